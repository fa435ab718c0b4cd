"""Test of the Kafka backend with two brokers, of which one is killed and restarted."""

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapter.errors import BackendError
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, open_backend
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.kafka_server import Admin, KafkaServer
from tests.backends.peers.kafka import Peer

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="kafka")], indirect=True, scope="session"),
]
FAST_FAILURE_DETECTION: dict[str, Any] = {"broker_session_timeout_ms": "3000", "broker_heartbeat_interval_ms": "500"}


class TwoBrokers:
    """Two brokers; the first is the controller and the coordinator of all groups, because it started alone."""

    def __init__(self, folder: Path, password: str) -> None:
        self.first = KafkaServer(folder / "first", **FAST_FAILURE_DETECTION)
        self.first.start()
        self.admin = Admin(self.first)
        self.admin.open()
        self.second = KafkaServer(
            folder / "second", node=2, controller_port=self.first.controller_port, **FAST_FAILURE_DETECTION
        )
        self.second.start()
        self.admin.set_password(password)
        self.admin.allow()
        self.admin.wait_for_brokers(2)
        self.admin.topic("single-replica", on={0: [1], 1: [2]})
        self.admin.topic("replicated", on={0: [2, 1]})
        self.admin.fill("single-replica", 5, 5)
        self.admin.fill("replicated", 5)
        self.admin.set_lag("g", {("single-replica", 0): 1, ("single-replica", 1): 2, ("replicated", 0): 3})

    def stop(self) -> None:
        self.admin.close()
        self.second.stop()
        self.first.stop()


@pytest.fixture
def pair(peer: Peer, tmp_path: Path) -> Iterator[TwoBrokers]:
    pair = TwoBrokers(tmp_path, peer.good)
    yield pair
    pair.stop()


async def by_partition(opened: OpenBackend) -> dict[tuple[str, str], float]:
    samples = await opened.fetch({"group": "g", "series": "partition"})
    return {(sample.labels["topic"], sample.labels["partition"]): sample.value for sample in samples}


async def eventually(opened: OpenBackend, expected: dict[tuple[str, str], float]) -> None:
    """Wait for the expected lags; until then, requests may fail or lags may be NaN, but never wrong."""
    for _ in range(600):
        try:
            now = await by_partition(opened)
        except BackendError:
            now = {}
        if now == pytest.approx(expected, nan_ok=True):
            return
        for partition, value in now.items():
            assert math.isnan(value) or value == ALL[partition]
        await asyncio.sleep(0.1)
    pytest.fail(f"{now}")


ALL = {("single-replica", "0"): 1.0, ("single-replica", "1"): 2.0, ("replicated", "0"): 3.0}


async def test_offsets_are_fetched_from_the_current_leaders(peer: Peer, pair: TwoBrokers) -> None:
    async with open_backend(peer, bootstrapServers=[f"{LOOPBACK}:{pair.first.port}"]) as opened:
        assert await by_partition(opened) == ALL
        await asyncio.to_thread(pair.second.program.kill)
        with pytest.raises(BackendError) as caught:
            await opened.fetch({"group": "g", "topics": ["single-replica"]})
        assert caught.value.failure is FailureClass.UNREACHABLE
        await eventually(
            opened, {**ALL, ("single-replica", "1"): math.nan}
        )  # the replicated partition has a new leader, the other has none
        (sample,) = await opened.fetch({"group": "g", "topics": ["single-replica"]})
        assert math.isnan(sample.value)
        await asyncio.to_thread(pair.second.start)
        await eventually(opened, ALL)
