"""Consumers of a real RabbitMQ, scaled by the length of their queue, through an outage of the broker."""

from collections.abc import Iterator
from threading import Event, Thread
from typing import Self

import pytest

from tests.backends.rabbitmq_server import RabbitMqServer
from tests.control_plane.cluster import ControlPlane
from tests.integration.scaling import Rig, autoscaler, create_with_retry, deployment, external, rig, short_fallbacks

pytestmark = [pytest.mark.apiserver, pytest.mark.broker]

PASSWORD = "password-of-the-reader"  # noqa: S105 - only used in this test
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
    settings = {"url": broker.url, "basicAuth": {"username": "reader", "passwordFile": str(secret)}}
    with rig(plane, "rabbit") as ready:
        ready.extra_config = {"backends": {"rabbit": {"rabbitmq": settings}}, "rules": [RULE]}
        ready.set()
        with short_fallbacks(ready):
            yield ready


class Consumers:
    """Consumes messages at a rate proportional to the replicas of the workload."""

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


def test_consumers_follow_the_queue_and_an_outage_uses_the_fallback(shop, broker):
    broker.fill("orders", 3)
    shop.apply(deployment("consumers", 1))
    fallback = {"replicas": 7, "failureDurationSeconds": 4}
    create_with_retry(shop, autoscaler("consumers", external("orders", fallback=fallback)))
    shop.wait_for_condition("ExternalMetricFallbackActive", "False", "NoFailureKnown", "consumers")
    assert shop.replicas("consumers") == 1

    broker.fill("orders", 60)
    shop.wait_for_replicas(12, "consumers")  # the default policies allow doubling, or four more, per 15 s
    with Consumers(shop, broker) as consumers:
        shop.wait_for_replicas(1, "consumers")
    assert consumers.taken >= 55

    broker.program.kill()
    shop.wait_for_condition("ExternalMetricFallbackActive", "False", "FallbackPending", "consumers")
    assert shop.replicas("consumers") == 1
    shop.wait_for_condition("ExternalMetricFallbackActive", "True", "FallbackActive", "consumers")
    shop.wait_for_replicas(7, "consumers")

    broker.program.start(within=120)
    broker.fill("orders", 20)
    shop.wait_for_condition("ExternalMetricFallbackActive", "False", "NoFailureKnown", "consumers")
    shop.wait_for_replicas(4, "consumers")
    events = shop.events("consumers")
    assert events.count("ExternalMetricFallbackActivated") == events.count("ExternalMetricFallbackDeactivated") == 1
    assert not any(PASSWORD in program.log.read_text() for program in shop.programs)
