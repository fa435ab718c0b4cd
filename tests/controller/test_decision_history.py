"""A day of an autoscaler in virtual time, with an outage, a killed leader and a restart: every moment is explained."""

import asyncio
import random
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from adapter.config.model import DecisionHistory
from adapter.history.reader import HistoryReader, RecordedMoment
from adapter.history.service import DecisionHistoryService
from autoscaler.controller.run import ControllerProcess
from autoscaler.kube.client import KubeClient
from autoscaler.sharding.held_shards import HeldShards
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from tests.controller.harness import WITHOUT_LEADER_ELECTION, Harness, queue

pytestmark = pytest.mark.looptime

ELECTED = replace(
    WITHOUT_LEADER_ELECTION,
    leader_elect=True,
    lease_duration=timedelta(seconds=45),
    renew_deadline=timedelta(seconds=30),
    retry_period=timedelta(seconds=10),
)
KEY = "shop/web"
HOUR = 300
"""Seconds: the day is compressed to two hours of virtual time, because every renewal of the Lease is a request."""


@dataclass
class AllDecisions:
    """Every decision of all replicas: what the history must agree with."""

    decisions: list[Decision] = field(default_factory=list)

    def on_decision(self, _key: str, _autoscaler: Autoscaler, decision: Decision) -> None:
        self.decisions.append(decision)

    def on_deleted(self, key: str) -> None:
        pass

    def on_leadership_acquired(self, keys: Collection[str], _shards: HeldShards) -> None:
        pass

    def on_leadership_lost(self) -> None:
        pass

    def at(self, moment: datetime) -> Decision | None:
        """Return the decision in force; of several at the same moment of virtual time, the last one."""
        before = [one for one in self.decisions if one.at <= moment]
        return max(reversed(before), key=lambda one: one.at, default=None)


@dataclass
class Replica:
    """One replica of the service: controller and decision history."""

    harness: Harness
    history: DecisionHistoryService
    process: ControllerProcess
    writing: "asyncio.Task[None]"

    async def stop(self) -> None:
        """Stop like after SIGTERM."""
        await self.harness.stop(self.process)
        await asyncio.sleep(0.5)
        await self.kill_writer()

    async def kill(self) -> None:
        """Stop without a last write and without releasing the Lease, like after SIGKILL."""
        self.writing.cancel()
        self.harness.cluster.faults.fail_next(500, times=1000, verb="update", within="/leases/")
        self.harness.cluster.faults.fail_next(500, times=1000, within="/configmaps")
        await self.kill_writer()
        await self.harness.stop(self.process)
        self.harness.cluster.faults.clear()

    async def kill_writer(self) -> None:
        self.writing.cancel()
        await asyncio.wait((self.writing,))


@dataclass
class Service:
    """The replicas of the service, and all their decisions."""

    harness: Harness
    stack: AsyncExitStack
    decided: AllDecisions = field(default_factory=AllDecisions)

    async def start(self, identity: str) -> Replica:
        kube = await self.stack.enter_async_context(KubeClient.open(self.harness.cluster.connection))
        clock = self.harness.cluster.clock
        history = DecisionHistoryService(kube, "steadyscale", DecisionHistory(), clock, identity)
        process = self.harness.start(ELECTED, identity, listeners=(self.decided, history.recorder))
        writing = asyncio.create_task(history.writer.run())
        replica = Replica(self.harness, history, process, writing)
        self.stack.push_async_callback(replica.kill_writer)
        return replica


@pytest.fixture
async def service(harness: Harness) -> AsyncIterator[Service]:
    async with AsyncExitStack() as stack:
        yield Service(harness, stack)


def explanation(decision: Decision) -> object:
    """Return what an answer must have in common with the decision that was in force."""
    conditions = [(one.type, one.status, one.reason) for one in decision.status.conditions]
    return decision.replicas, decision.limiting_factor, [type(step) for step in decision.steps], conditions


def assert_explained(answer: RecordedMoment, decided: AllDecisions, gaps: list[tuple[datetime, datetime]]) -> None:
    if any(start < answer.at < end for start, end in gaps):
        assert answer.gap is not None
        return
    expected = decided.at(answer.at)
    assert expected is not None
    assert answer.record is not None
    assert answer.record.at <= expected.at
    assert explanation(answer.record.decision) == explanation(expected), answer.at


async def ask_everything(service: Service, readers: list[HistoryReader], start: datetime) -> tuple[int, int]:
    """Ask for many moments of the day on every replica; return the number of answers and of gaps among them."""
    now, chosen = service.harness.cluster.clock(), random.Random(7)  # noqa: S311 - a sample
    last = now - timedelta(seconds=20)  # later decisions may not be stored yet
    moments = [start + (last - start) * chosen.random() for _ in range(300)]
    moments += [one.at + timedelta(milliseconds=1) for one in service.decided.decisions[1::16] if one.at < last]
    unknown = 0
    for reader in readers:
        period = await reader.period(KEY, start - timedelta(hours=1), now)
        gaps = [(gap.start, gap.end) for gap in period.gaps]
        assert all(gap.reason for gap in period.gaps)
        for moment in moments:
            answer = await reader.moment(KEY, moment)
            assert_explained(answer, service.decided, gaps)
            unknown += answer.gap is not None
    return len(moments) * len(readers), unknown


async def live_a_day(service: Service) -> list[Replica]:
    """Run two replicas for a day with a changing metric, an outage, a killed leader and a restart."""
    harness, rng = service.harness, random.Random(3)  # noqa: S311 - a simulation
    first = await service.start("one")
    await asyncio.sleep(5)
    second = await service.start("two")
    for hour in range(24):
        if hour == 6:
            harness.external_metrics.set("queue", "connection refused")
        elif hour == 10:
            await first.kill()
        elif hour == 11:
            first = await service.start("three")
        elif hour == 15:
            await second.stop()
            second = await service.start("four")
        for _ in range(4):
            if hour != 6:
                harness.external_metrics.set("queue", rng.randint(5, 90))
            await asyncio.sleep(HOUR / 4)
    await asyncio.sleep(20)
    return [first, second]


async def test_every_moment_of_a_day_is_explained_by_every_replica(service: Service):
    harness = service.harness
    harness.external_metrics.set("queue", 20)
    harness.deployment(replicas=4)
    harness.autoscaler("web", queue(fallback={"replicas": 10, "failureDurationSeconds": 180}))
    start = harness.cluster.clock()
    readers = [replica.history.reader for replica in await live_a_day(service)]

    answers, unknown = await ask_everything(service, readers, start + timedelta(minutes=1))
    assert answers > 600
    assert unknown < answers / 20
    period = await readers[0].period(KEY, start, harness.cluster.clock())
    killed, *stopped = [gap.reason for gap in period.gaps]
    assert killed == "one ended without a last write, and two was not the leader yet"
    assert set(stopped) <= {"there was no leader between the terms of two and three"}  # usually it takes no time here
    assert all(gap.end - gap.start < timedelta(minutes=2) for gap in period.gaps)
    assert len(period.records) < len(service.decided.decisions) / 2
