"""ExternalMetric objects on a cluster in memory: from kubectl apply to a number, and back into the status."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter import errors
from adapter.backends.configuration import BackendEntry, ForObjects
from adapter.backends.prometheus.settings import Prometheus
from adapter.custom_resources.status_writer import StatusKeeper
from adapter.custom_resources.watcher import ExternalMetricObjects
from adapter.fakecluster.cluster import Cluster
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import RuleReader, Sources
from adapter.rules.rule import Rule, Series
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.values.selector import parse
from tests.fakes.backend import ScriptedBackend, loop_clock, raw

CRD = yaml.safe_load((Path(__file__).parents[4] / "manifests" / "crds" / "externalmetrics.yaml").read_text())
SHOP = "/apis/steadyscale.dev/v1beta1/namespaces/shop/externalmetrics"
BACKENDS = {"main": BackendEntry(external_metrics=ForObjects(), prometheus=Prometheus(url="http://p"))}
ASKED = 'x{namespace="shop"}'


@dataclass
class Dependencies:
    cluster: Cluster
    backend: ScriptedBackend
    reader: RuleReader
    objects: ExternalMetricObjects
    statuses: StatusKeeper

    def apply(self, name: str, **spec: Any) -> None:
        self.cluster.put(
            f"{SHOP}/{name}",
            {"apiVersion": "steadyscale.dev/v1beta1", "kind": "ExternalMetric", "metadata": {}, "spec": spec},
        )

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not holds():  # noqa: ASYNC110 - neither a watch nor a fetch has a bell to ring for a test
                await asyncio.sleep(0.01)

    async def value(self, namespace: str = "shop", metric: str = "queue", selector: str = "") -> int:
        return sum(sample.milli for sample in await self.reader.read(namespace, metric, parse(selector)))

    def status(self, name: str = "queue") -> dict[str, Any]:
        return (self.cluster.get(f"{SHOP}/{name}") or {}).get("status", {})

    def ready(self, name: str = "queue") -> tuple[str, str, str]:
        (condition,) = self.status(name)["conditions"]
        return condition["status"], condition["reason"], condition["message"]


@asynccontextmanager
async def world(*filed: Rule) -> AsyncIterator[Dependencies]:
    backend = ScriptedBackend("main")
    book = RuleRegistry(filed)
    reader = RuleReader(book, Sources.of(Fetcher({"main": backend, "static": backend}, loop_clock)), loop_clock)
    async with Cluster.serving() as cluster, cluster.client() as client:
        cluster.define(CRD)
        objects = ExternalMetricObjects(client, book, BACKENDS)
        statuses = StatusKeeper(client, objects, reader, loop_clock, values_every=timedelta(0))
        following = asyncio.create_task(objects.run())
        yield Dependencies(cluster, backend, reader, objects, statuses)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await reader.sources.aclose()


async def test_an_object_is_a_metric_in_its_namespace_and_only_there():
    async with world() as here:
        here.backend.rows[ASKED] = (raw(3, loop_clock()), raw(4, loop_clock()))
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.objects.rules)

        assert await here.value() == 7000
        with pytest.raises(errors.MetricNotFound):
            await here.value("bank")


async def test_an_edit_is_in_force_and_a_deletion_too():
    async with world(Rule("queue", (Series(1.0),))) as here:
        here.backend.rows[ASKED] = (raw(3, loop_clock()),)
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.objects.rules)
        assert await here.value() == 3000

        here.backend.rows['y{namespace="shop"}'] = (raw(5, loop_clock()),)
        here.apply("queue", backend="main", query="y")
        await here.until(lambda: here.objects.rules["shop/queue"].query.startswith("y"))
        assert await here.value() == 5000

        here.cluster.delete(f"{SHOP}/queue")
        await here.until(lambda: not here.objects.rules)
        assert here.reader.book.origin(here.reader.book.rules.find("shop", "queue")) == "configuration"


async def test_the_status_says_what_the_metric_is():
    async with world() as here:
        here.backend.rows[ASKED] = (raw(1.5, loop_clock()), raw(1, loop_clock()))
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.objects.rules)
        await here.statuses.look()

        assert here.ready() == ("True", "Readable", "the metric can be read")
        assert (here.status()["lastValue"], here.status()["series"]) == ("2500m", 2)
        assert here.status()["observedGeneration"] == 1


async def test_the_status_says_what_is_wrong_with_the_backend_and_when_that_is_over():
    async with world() as here:
        here.backend.rows[ASKED] = errors.BackendUnauthorized("the token is not accepted")
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.objects.rules)
        await here.statuses.look()
        assert here.ready() == (
            "False",
            "Unauthorized",
            "metric 'queue': main: unauthorized: the token is not accepted",
        )
        assert here.status()["lastError"] == here.ready()[2]

        here.backend.rows[ASKED] = (raw(1, loop_clock()),)
        await here.until(lambda: here.reader.glance("shop", "queue", parse("")).error is None)
        await here.statuses.look()
        assert here.ready()[0] == "True"


async def test_what_has_not_changed_is_not_written_again_after_a_failure_either():
    async with world() as here:
        here.backend.rows[ASKED] = errors.BackendUnauthorized("the token is not accepted")
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.objects.rules)
        await here.statuses.look()
        here.backend.rows[ASKED] = (raw(1, loop_clock()),)
        await here.until(lambda: here.reader.glance("shop", "queue", parse("")).error is None)
        await here.statuses.look()

        version = here.cluster.get(f"{SHOP}/queue")["metadata"]["resourceVersion"]
        await asyncio.sleep(1.1)  # times are written in whole seconds
        await here.statuses.look()
        assert here.cluster.get(f"{SHOP}/queue")["metadata"]["resourceVersion"] == version


async def test_one_bad_object_affects_nothing_else_and_says_what_is_wrong():
    async with world() as here:
        here.backend.rows[ASKED] = (raw(3, loop_clock()),)
        here.apply("bad", backend="nowhere", query="x")
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.objects.rules and here.objects.problems)
        await here.statuses.look()

        assert await here.value() == 3000
        assert here.ready("bad") == (
            "False",
            "Invalid",
            "spec.backend: there is no backend 'nowhere'; the backends are main",
        )


async def test_of_two_objects_with_one_name_the_older_defines_it():
    async with world() as here:
        here.apply("first", metric="queue", static=[{"value": 1}])
        await asyncio.sleep(1.1)
        here.apply("another", metric="Queue", static=[{"value": 2}])
        await here.until(lambda: here.objects.problems)

        assert set(here.objects.rules) == {"shop/first"}
        assert here.objects.problems == {
            "shop/another": ("spec.metric: 'Queue' is defined by ExternalMetric 'first' already",)
        }
        here.cluster.delete(f"{SHOP}/first")
        await here.until(lambda: set(here.objects.rules) == {"shop/another"})


async def test_looking_at_a_metric_that_nobody_reads_does_not_keep_it_being_fetched():
    async with world() as here:
        here.backend.rows[ASKED] = (raw(3, loop_clock()),)
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.objects.rules)
        await here.statuses.look()
        await here.until(lambda: here.objects.store.get("shop/queue").status)
        here.reader.sources.snapshots.forget(here.reader.glance("shop", "queue", parse("")).query)
        for _ in range(5):
            await here.statuses.look()

        assert here.backend.asked[ASKED] == 1


async def test_backends_that_open_or_close_change_what_objects_may():
    async with world() as here:
        here.apply("queue", backend="main", query="x")
        await here.until(lambda: here.objects.rules)
        here.objects.use_backends({"main": BackendEntry(prometheus=Prometheus(url="http://p"))})
        assert set(here.objects.problems) == {"shop/queue"}

        here.objects.use_backends(BACKENDS)
        assert set(here.objects.rules) == {"shop/queue"}
