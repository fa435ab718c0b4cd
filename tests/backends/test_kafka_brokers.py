"""Kafka of two brokers: partitions and their leaders on both, one that is lost, and what comes back with it."""

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.errors import BackendError
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.kafka_server import Admin, KafkaServer
from tests.backends.peers.kafka import Peer

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="kafka")], indirect=True, scope="session"),
]
SOON = {"broker_session_timeout_ms": "3000", "broker_heartbeat_interval_ms": "500"}


class Pair:
    """Two brokers; the first is the controller and has all groups, because it was there alone at first."""

    def __init__(self, folder: Path, password: str) -> None:
        self.first = KafkaServer(folder / "first", **SOON)
        self.first.start()
        self.admin = Admin(self.first)
        self.admin.open()
        self.second = KafkaServer(folder / "second", node=2, led_by=self.first.controller_port, **SOON)
        self.second.start()
        self.admin.believe(password)
        self.admin.allow()
        self.admin.wait_for_brokers(2)
        self.admin.topic("apart", on={0: [1], 1: [2]})
        self.admin.topic("kept", on={0: [2, 1]})
        self.admin.fill("apart", 5, 5)
        self.admin.fill("kept", 5)
        self.admin.behind("g", {("apart", 0): 1, ("apart", 1): 2, ("kept", 0): 3})

    def stop(self) -> None:
        self.admin.close()
        self.second.stop()
        self.first.stop()


@pytest.fixture
def pair(peer: Peer, tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path, peer.good)
    yield made
    made.stop()


async def by_partition(opened: Opened) -> dict[tuple[str, str], float]:
    samples = await opened.ask({"group": "g", "series": "partition"})
    return {(sample.labels["topic"], sample.labels["partition"]): sample.value for sample in samples}


async def soon(opened: Opened, expected: dict[tuple[str, str], float]) -> None:
    """See that an answer comes about; until then there may be none, and never a wrong one."""
    for _ in range(600):
        try:
            now = await by_partition(opened)
        except BackendError:
            now = {}
        if now == pytest.approx(expected, nan_ok=True):
            return
        for place, value in now.items():
            assert math.isnan(value) or value == ALL[place]
        await asyncio.sleep(0.1)
    pytest.fail(f"{now}")


ALL = {("apart", "0"): 1.0, ("apart", "1"): 2.0, ("kept", "0"): 3.0}


async def test_partitions_are_asked_about_where_they_are_led(peer: Peer, pair: Pair) -> None:
    async with backend_of(peer, bootstrapServers=[f"{LOOPBACK}:{pair.first.port}"]) as opened:
        assert await by_partition(opened) == ALL
        await asyncio.to_thread(pair.second.program.kill)
        with pytest.raises(BackendError) as caught:
            await opened.ask({"group": "g", "topics": ["apart"]})
        assert caught.value.failure is FailureClass.UNREACHABLE
        await soon(opened, {**ALL, ("apart", "1"): math.nan})  # one found another leader, one has none
        (apart,) = await opened.ask({"group": "g", "topics": ["apart"]})
        assert math.isnan(apart.value)
        await asyncio.to_thread(pair.second.start)
        await soon(opened, ALL)
