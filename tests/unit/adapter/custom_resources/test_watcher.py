"""ExternalMetric objects on an in-memory cluster: from the object to a metric, and back to the status."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter import errors
from adapter.backends.configuration import BackendEntry, ExternalMetricAccess
from adapter.backends.prometheus.settings import Prometheus
from adapter.config.model import TenantLimits
from adapter.custom_resources.loop_share import LoopShare
from adapter.custom_resources.status_writer import ExternalMetricStatusWriter
from adapter.custom_resources.watcher import ExternalMetricWatcher
from adapter.decoding.problem import Problem
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.rules.rule import Rule, Series
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.values.selector import parse
from tests.fakes.backend import ScriptedBackend, loop_clock, raw
from tests.fakes.cluster import Cluster
from tests.waiting import GIVE_UP

CRD = yaml.safe_load((Path(__file__).parents[4] / "manifests" / "crds" / "externalmetrics.yaml").read_text())
SHOP = "/apis/steadyscale.dev/v1beta1/namespaces/shop/externalmetrics"
BACKENDS = {"main": BackendEntry(external_metrics=ExternalMetricAccess(), prometheus=Prometheus(url="http://p"))}
LIMITS = TenantLimits()
QUERY = 'x{namespace="shop"}'


@dataclass
class Fixture:
    cluster: Cluster
    backend: ScriptedBackend
    reader: MetricReader
    watcher: ExternalMetricWatcher
    status_writer: ExternalMetricStatusWriter

    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    path = SHOP

    def start_watching(self) -> None:
        self.tasks.append(asyncio.create_task(self.watcher.run()))

    async def stop_watching(self) -> None:
        self.tasks[-1].cancel()
        await asyncio.gather(self.tasks[-1], return_exceptions=True)

    @property
    def in_force(self) -> list[str]:
        """The names of the objects in force."""
        return sorted(key.partition("/")[2] for key in self.watcher.rules)

    def apply(self, name: str, namespace: str = "shop", /, **spec: Any) -> None:
        self.cluster.put(
            f"{SHOP.replace('shop', namespace)}/{name}",
            {"apiVersion": "steadyscale.dev/v1beta1", "kind": "ExternalMetric", "metadata": {}, "spec": spec},
        )

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(GIVE_UP):
            while not holds():  # noqa: ASYNC110 - watches and fetches have no event for tests
                await asyncio.sleep(0.01)

    async def value(self, namespace: str = "shop", metric: str = "queue", selector: str = "") -> int:
        return sum(sample.milli for sample in await self.reader.read_samples(namespace, metric, parse(selector)))

    def resource_version(self) -> object:
        return (self.cluster.get(f"{SHOP}/queue") or {})["metadata"]["resourceVersion"]

    def status(self, name: str = "queue") -> dict[str, Any]:
        return (self.cluster.get(f"{SHOP}/{name}") or {}).get("status", {})

    def ready(self, name: str = "queue") -> tuple[str, str, str]:
        (condition,) = self.status(name)["conditions"]
        return condition["status"], condition["reason"], condition["message"]


@asynccontextmanager
async def running(
    *file_rules: Rule, limits: TenantLimits = LIMITS, backends: Mapping[str, BackendEntry] = BACKENDS
) -> AsyncIterator[Fixture]:
    backend = ScriptedBackend("main")
    registry = RuleRegistry(file_rules)
    fetcher = Fetcher(dict.fromkeys(("static", *backends), backend), loop_clock)
    reader = MetricReader(registry, Sources(fetcher), loop_clock)
    async with Cluster.serving() as cluster, cluster.client() as client:
        cluster.install_crd(CRD)
        watcher = ExternalMetricWatcher(client, registry, backends, limits)
        status_writer = ExternalMetricStatusWriter(client, watcher, reader, loop_clock, value_interval=timedelta(0))
        here = Fixture(cluster, backend, reader, watcher, status_writer)
        here.start_watching()
        try:
            yield here
        finally:
            await here.stop_watching()
            await reader.sources.aclose()


async def test_object_defines_a_metric_in_its_namespace_only():
    async with running() as here:
        here.backend.results[QUERY] = (raw(3, loop_clock()), raw(4, loop_clock()))
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.watcher.rules)

        assert await here.value() == 7000
        with pytest.raises(errors.MetricNotFound):
            await here.value("bank")


async def test_changes_and_deletions_take_effect():
    async with running(Rule("queue", (Series(1.0),))) as here:
        here.backend.results[QUERY] = (raw(3, loop_clock()),)
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.watcher.rules)
        assert await here.value() == 3000

        here.backend.results['y{namespace="shop"}'] = (raw(5, loop_clock()),)
        here.apply("queue", backend="main", query="y")
        await here.until(lambda: here.watcher.rules["shop/queue"].query.startswith("y"))
        assert await here.value() == 5000

        here.cluster.delete(f"{SHOP}/queue")
        await here.until(lambda: not here.watcher.rules)
        rule = here.reader.registry.rules.find("shop", "queue")
        assert rule is not None
        assert here.reader.registry.origin(rule) == "configuration"


async def test_status_contains_the_value():
    async with running() as here:
        here.backend.results[QUERY] = (raw(1.5, loop_clock()), raw(1, loop_clock()))
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.watcher.rules)
        await here.status_writer.write_changes()

        assert here.ready() == ("True", "Readable", "the metric can be read")
        assert (here.status()["lastValue"], here.status()["series"]) == ("2500m", 2)
        assert here.status()["observedGeneration"] == 1


async def test_status_contains_the_error_of_the_backend_and_its_recovery():
    async with running() as here:
        here.backend.results[QUERY] = errors.BackendUnauthorized("the token is not accepted")
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.watcher.rules)
        await here.status_writer.write_changes()
        assert here.ready() == (
            "False",
            "Unauthorized",
            "metric 'queue': main: unauthorized: the token is not accepted",
        )
        assert here.status()["lastError"] == here.ready()[2]

        here.backend.results[QUERY] = (raw(1, loop_clock()),)
        await here.until(lambda: here.reader.peek("shop", "queue", parse("")).error is None)
        await here.status_writer.write_changes()
        assert here.ready()[0] == "True"


async def test_refused_query_of_a_tenant_has_the_same_reason_as_a_refused_object():
    async with running() as here:
        here.backend.results[QUERY] = errors.OverBudget("tenantLimits.queriesPerMinute is 10")
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.watcher.rules)
        await here.status_writer.write_changes()

        assert here.ready()[:2] == ("False", "BudgetExceeded")
        assert "tenantLimits.queriesPerMinute is 10" in here.ready()[2]


async def test_unchanged_status_is_not_written_again_after_a_failure():
    async with running() as here:
        here.backend.results[QUERY] = errors.BackendUnauthorized("the token is not accepted")
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.watcher.rules)
        await here.status_writer.write_changes()
        here.backend.results[QUERY] = (raw(1, loop_clock()),)
        await here.until(lambda: here.reader.peek("shop", "queue", parse("")).error is None)
        await here.status_writer.write_changes()

        version = here.resource_version()
        await asyncio.sleep(1.1)  # times are written in whole seconds
        await here.status_writer.write_changes()
        assert here.resource_version() == version


async def test_invalid_object_has_its_problem_in_the_status_and_affects_no_other():
    async with running() as here:
        here.backend.results[QUERY] = (raw(3, loop_clock()),)
        here.apply("bad", backend="nowhere", query="x")
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.watcher.rules and here.watcher.problems)
        await here.status_writer.write_changes()

        assert await here.value() == 3000
        assert here.ready("bad") == (
            "False",
            "Invalid",
            (
                "spec.backend: backend 'nowhere' is not available to ExternalMetrics in namespace 'shop';"
                " available backends: main; see externalMetrics of a backend"
            ),
        )


async def test_older_of_two_objects_with_the_same_metric_is_used():
    async with running() as here:
        here.apply("first", metric="queue", static=[{"value": 1}])
        await asyncio.sleep(1.1)
        here.apply("another", metric="Queue", static=[{"value": 2}])
        await here.until(lambda: here.watcher.problems)

        assert set(here.watcher.rules) == {"shop/first"}
        assert here.watcher.problems == {
            "shop/another": (Problem("spec.metric", "'Queue' is already defined by ExternalMetric 'first'"),)
        }
        here.cluster.delete(f"{SHOP}/first")
        await here.until(lambda: set(here.watcher.rules) == {"shop/another"})


async def test_writing_the_status_does_not_keep_an_unread_query_refreshed():
    async with running() as here:
        here.backend.results[QUERY] = (raw(3, loop_clock()),)
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.watcher.rules)
        await here.status_writer.write_changes()
        await here.until(lambda: all(each.status for each in here.watcher.store))
        query = here.reader.peek("shop", "queue", parse("")).query
        assert query is not None
        here.reader.sources.snapshots.drop(query)
        for _ in range(5):
            await here.status_writer.write_changes()

        assert here.backend.fetches[QUERY] == 1


async def test_objects_are_validated_again_when_backends_change():
    async with running() as here:
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.watcher.rules)
        here.watcher.configure({"main": BackendEntry(prometheus=Prometheus(url="http://p"))}, TenantLimits())
        await here.until(lambda: set(here.watcher.problems) == {"shop/queue"})
        assert not here.watcher.rules

        here.watcher.configure(BACKENDS, TenantLimits())
        await here.until(lambda: set(here.watcher.rules) == {"shop/queue"})


async def test_change_of_the_spec_is_noticed_in_the_response_to_a_status_write():
    async with running() as here:
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.watcher.rules)
        await here.stop_watching()
        here.apply("queue", backend="main", query="y")
        await here.status_writer.write_changes()  # the response is newer than the event, which is therefore ignored
        here.start_watching()

        await here.until(lambda: here.watcher.rules["shop/queue"].query.startswith("y"))


async def test_interrupted_update_is_repeated_when_the_watcher_runs_again(monkeypatch: pytest.MonkeyPatch):
    async with running() as here:
        interrupted = asyncio.Event()

        async def interrupt() -> None:
            interrupted.set()
            await asyncio.sleep(3600)

        with monkeypatch.context() as patched:
            patched.setattr(LoopShare, "step", lambda _: interrupt())
            for name in ("a", "b", "c"):
                here.apply(name, static=[{"value": 1}])
            await interrupted.wait()
            await here.stop_watching()
        here.start_watching()

        await here.until(lambda: here.in_force == ["a", "b", "c"])
