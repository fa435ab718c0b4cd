"""The status of ExternalMetric objects that no caller reads, with one and with several replicas, in virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import pytest

from adapter import errors
from adapter.custom_resources.status_writer import ExternalMetricStatusWriter
from adapter.custom_resources.watched_object import ExternalMetricObject, read_object
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.rules.rule import Namespacing, TenantRule
from adapter.rules.rule_registry import RuleRegistry
from adapter.sample import RawSample
from autoscaler.values.selector import parse
from tests.fakes.backend import ScriptedBackend, loop_clock, raw

pytestmark = pytest.mark.looptime
QUERY: Final = "x"
READ_INTERVAL: Final = 15
SECONDS_TO_IDLE: Final = 2.5 * 60 + 75 + 10
"""Of a metric without callers: the snapshot is refreshed for at most 75 s, and a check takes place every 5 s."""


class Cluster:
    """One object and its status: the store and the client of all replicas."""

    def __init__(self) -> None:
        self.status: dict[str, Any] = {}
        self.writes = 0

    def __iter__(self) -> Iterator[ExternalMetricObject]:
        metadata = {"namespace": "shop", "name": "queue", "generation": 1}
        yield read_object({"metadata": metadata, "status": self.status})

    async def patch(self, _path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.status = {**self.status, **body["status"]}
        self.writes += 1
        return {}

    @property
    def ready(self) -> tuple[str, str, str]:
        (condition,) = self.status["conditions"]
        return condition["status"], condition["reason"], condition["message"]


class Replica:
    """A replica with its own reads of the object's metric."""

    def __init__(self, cluster: Cluster, backend: ScriptedBackend, query: str) -> None:
        rule = TenantRule(
            "queue",
            namespaces=("shop",),
            backend="main",
            query=query,
            namespace=Namespacing(),
            max_sample_age=timedelta(days=1),
        )
        registry = RuleRegistry()
        registry.set_object_rule("shop/queue", rule)
        self.store, self.rules, self.rejections = cluster, {"shop/queue": rule}, dict[str, object]()
        self.reader = MetricReader(registry, Sources(Fetcher({"main": backend}, loop_clock)), loop_clock)
        objects: Any = self
        client: Any = cluster
        self.writer = ExternalMetricStatusWriter(client, objects, self.reader, loop_clock)

    def apply_response(self, _content: object) -> None:
        """Do nothing: the store is the cluster."""

    async def read(self, seconds: float, selector: str = "") -> None:
        """Read the metric as an HPA does, for some seconds."""
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            await self.reader.read("shop", "queue", parse(selector))
            await asyncio.sleep(READ_INTERVAL)


@asynccontextmanager
async def running(count: int, query: str = QUERY) -> AsyncIterator[tuple[Cluster, ScriptedBackend, list[Replica]]]:
    cluster, backend = Cluster(), ScriptedBackend("main")
    backend.results[QUERY] = (raw(3, loop_clock(), namespace="shop"),)
    created = [Replica(cluster, backend, query) for _ in range(count)]
    tasks = [asyncio.create_task(replica.writer.run()) for replica in created]
    try:
        yield cluster, backend, created
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for replica in created:
            await replica.reader.sources.aclose()


async def test_metric_without_callers_is_idle_with_the_time_of_its_last_read():
    async with running(1) as (cluster, backend, (replica,)):
        await replica.read(120)
        assert cluster.ready[:2] == ("True", "Readable")
        backend.results[QUERY] = ()  # the queue is deleted while no caller reads the metric
        await asyncio.sleep(SECONDS_TO_IDLE)

        status, reason, message = cluster.ready
        assert (status, reason) == ("Unknown", "Idle")
        assert message.startswith("not read since 2026-01-01T00:0")


async def test_idle_metric_keeps_its_last_error_and_recovers_with_the_next_read():
    async with running(1) as (cluster, backend, (replica,)):
        backend.results[QUERY] = errors.BackendUnreachable("connection refused")
        await replica.read(60)
        assert cluster.ready[:2] == ("False", "Unreachable")
        await asyncio.sleep(SECONDS_TO_IDLE)
        assert cluster.ready[:2] == ("Unknown", "Idle")
        assert cluster.ready[2].endswith("the last read failed: metric 'queue': main: unreachable: connection refused")

        backend.results[QUERY] = (raw(3, loop_clock(), namespace="shop"),)
        await replica.read(15)
        assert cluster.ready[:2] == ("True", "Readable")


async def test_idle_metric_costs_no_queries_and_no_writes():
    async with running(3) as (cluster, backend, (first, *_)):
        await first.read(60)
        await asyncio.sleep(SECONDS_TO_IDLE)
        fetches, writes = backend.fetches[QUERY], cluster.writes
        await asyncio.sleep(3600)
        assert (backend.fetches[QUERY], cluster.writes) == (fetches, writes)


async def test_metric_that_only_another_replica_reads_is_not_idle():
    async with running(2) as (cluster, _, (first, _second)):
        writes = cluster.writes
        for _ in range(10):
            await first.read(60)
            assert cluster.ready[:2] == ("True", "Readable")
        assert cluster.writes - writes <= 12  # an unchanged status is renewed once a minute


async def test_metric_with_a_template_is_not_idle_while_it_is_read_with_a_selector():
    async with running(1, "x{<<.LabelMatchers>>}") as (cluster, backend, (replica,)):
        backend.results['x{queue="a"}'] = (raw(7, loop_clock()),)
        await replica.read(600, "queue=a")
        assert cluster.ready[:2] == ("True", "Readable")
        assert cluster.status["lastValue"] == "7"

        backend.results['x{queue="a"}'] = ()
        await replica.read(60, "queue=a")
        assert cluster.ready[:2] == ("False", "NoSeries")
        await asyncio.sleep(SECONDS_TO_IDLE)
        assert cluster.ready[:2] == ("Unknown", "Idle")


@pytest.mark.parametrize("seed", range(4))
async def test_condition_follows_random_reads_of_random_replicas(seed: int):
    """The condition is that of the backend while a replica reads the metric, and ``Unknown`` after a pause."""
    choose = random.Random(seed)  # noqa: S311 - reproducible
    async with running(3) as (cluster, backend, created):
        for _ in range(8):
            results: dict[str, tuple[RawSample, ...] | Exception] = {
                "True": (raw(3, loop_clock(), namespace="shop"),),
                "False": errors.BackendUnreachable("connection refused"),
            }
            expected = choose.choice(list(results))
            backend.results[QUERY] = results[expected]
            readers = choose.sample(created, choose.randint(1, 3))
            await asyncio.gather(*(replica.read(choose.choice([60, 300])) for replica in readers))
            assert cluster.ready[0] == expected
            if choose.random() < 0.4:
                await asyncio.sleep(SECONDS_TO_IDLE)
                assert cluster.ready[0] == "Unknown"
