"""Consumers of a real RabbitMQ, scaled by the length of their queue; the broker is killed, and comes back."""

from collections.abc import Iterator
from threading import Event, Thread
from typing import Self

import pytest

from tests.backends.rabbitmq_server import RabbitMqServer
from tests.control_plane.cluster import ControlPlane
from tests.integration.scaling import Rig, autoscaler, create_soon, deployment, external, rig, short_fallbacks

pytestmark = [pytest.mark.apiserver, pytest.mark.broker]

PASSWORD = "password-of-the-reader"  # noqa: S105 - of a broker that lives for one test
RULE = {
    "name": "orders",
    "backend": "rabbit",
    "parameters": {"queue": "orders"},
    "interval": "1s",
    "deadline": "2s",
}


@pytest.fixture
def broker(tmp_path) -> Iterator[RabbitMqServer]:
    server = RabbitMqServer(tmp_path / "rabbitmq")
    server.start()
    server.add_user("reader", PASSWORD, "/")
    yield server
    server.stop()


@pytest.fixture
def shop(plane: ControlPlane, broker: RabbitMqServer, tmp_path) -> Iterator[Rig]:
    secret = tmp_path / "password"
    secret.write_text(PASSWORD)
    reached = {"url": broker.url, "basic": {"username": "reader", "passwordFile": str(secret)}}
    with rig(plane, "rabbit") as ready:
        ready.more = {"backends": {"rabbit": {"rabbitmq": reached}}, "rules": [RULE]}
        ready.set()
        with short_fallbacks(ready):
            yield ready


class Consumers:
    """As many as the workload has replicas; each takes a message now and then."""

    def __init__(self, shop: Rig, broker: RabbitMqServer) -> None:
        self._shop, self._broker, self._stop = shop, broker, Event()
        self.taken = 0
        self._thread = Thread(target=self._work, name="consumers")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        with self._broker.channel() as channel:
            while not self._stop.wait(0.3):
                for _ in range(self._shop.replicas("consumers")):
                    self.taken += channel.basic_get("orders", auto_ack=True)[0] is not None


def test_a_queue_is_worked_off_its_broker_dies_and_comes_back(shop, broker):
    broker.fill("orders", 3)
    shop.apply(deployment("consumers", 1))
    fallback = {"replicas": 7, "failureDurationSeconds": 4}
    create_soon(shop, autoscaler("consumers", external("orders", fallback=fallback)))
    shop.says("ExternalMetricFallbackActive", "False", "NoFailureKnown", "consumers")
    assert shop.replicas("consumers") == 1

    broker.fill("orders", 60)
    shop.becomes(12, "consumers", within=60)  # the default policies: at most twice as many, or four more, in 15 s
    with Consumers(shop, broker) as consumers:
        shop.becomes(1, "consumers", within=60)
    assert consumers.taken >= 55

    broker.program.kill()
    shop.says("ExternalMetricFallbackActive", "False", "FailureClockRunning", "consumers")
    assert shop.replicas("consumers") == 1
    shop.says("ExternalMetricFallbackActive", "True", "FallbackActive", "consumers")
    shop.becomes(7, "consumers", within=60)

    broker.program.start(within=120)
    broker.fill("orders", 20)
    shop.says("ExternalMetricFallbackActive", "False", "NoFailureKnown", "consumers", within=40)
    shop.becomes(4, "consumers", within=60)
    told = shop.events("consumers")
    assert told.count("ExternalMetricFallbackActivated") == told.count("ExternalMetricFallbackDeactivated") == 1
    assert not any(PASSWORD in program.log.read_text() for program in shop.programs)
