"""Rules imported from a prometheus-adapter file, with names from the file and from Prometheus."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapter.metrics.imported_rules import ImportedRules
from adapter.rules.prometheus_adapter.settings import PrometheusAdapterFile
from autoscaler.values.selector import parse
from tests.prometheus.failing_server import FailingProxy
from tests.prometheus.fixed_responses import NOW, as_of, backend, reader, until
from tests.prometheus.server import Server

pytestmark = [pytest.mark.prometheus, pytest.mark.usefixtures("no_resource_leaks")]
SUM = "sum(<<.Series>>{<<.LabelMatchers>>})"
KNOWN = {
    "seriesQuery": 'depth{queue!=""}',
    "resources": {"overrides": {"namespace": {"resource": "namespace"}}},
    "name": {"as": "queue_depth"},
    "metricsQuery": SUM,
}
FOUND = {
    "seriesQuery": '{__name__=~"odd|hostile"}',
    "resources": {"namespaced": False},
    "name": {"matches": "(.*)", "as": "my_${1}"},
    "metricsQuery": SUM,
}
WRONG = {**FOUND, "seriesQuery": "sum(depth)", "name": {"as": "wrong"}}


@asynccontextmanager
async def importing(
    url: str, path: Path, *rules: Any
) -> AsyncIterator[tuple[ImportedRules, Callable[[], tuple[str, ...]]]]:
    path.write_text(json.dumps({"externalRules": rules}))  # noqa: ASYNC240 - nothing else runs yet
    age = timedelta(seconds=as_of(0).timestamp() - NOW + 3600)
    file = PrometheusAdapterFile(str(path), "prometheus", timedelta(milliseconds=50), age)
    async with backend(url) as prometheus:
        read = reader(prometheus)
        imports = ImportedRules(read.registry, read.sources.fetcher, (file,))
        running = asyncio.create_task(imports.run())
        try:
            yield imports, lambda: read.names("shop")
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_names_from_the_file_and_from_prometheus_are_served(fixed: Server, tmp_path: Path) -> None:
    async with importing(fixed.url, tmp_path / "config.yaml", KNOWN, FOUND) as (_, names):
        await until(lambda: names() == ("my_hostile", "my_odd", "queue_depth"))


async def test_name_from_the_file_is_served_while_prometheus_is_unavailable(
    proxy: FailingProxy, tmp_path: Path
) -> None:
    proxy.failure = "503"
    async with importing(proxy.url, tmp_path / "config.yaml", KNOWN, FOUND) as (imports, names):
        await until(lambda: names() == ("queue_depth",))
        series_query = '{__name__=~"odd|hostile"}'
        await until(lambda: series_query in imports.files[0].errors)
        assert imports.files[0].errors[series_query] == "unreachable: HTTP 503 Service Unavailable (internal)"
        proxy.failure = ""
        await until(lambda: len(names()) == 3)
        assert imports.files[0].errors == {}


async def test_discovered_names_remain_during_an_outage(proxy: FailingProxy, tmp_path: Path) -> None:
    async with importing(proxy.url, tmp_path / "config.yaml", FOUND) as (imports, names):
        await until(lambda: names() == ("my_hostile", "my_odd"))
        proxy.failure = "503"
        await until(lambda: bool(imports.files[0].errors))
        assert names() == ("my_hostile", "my_odd")


async def test_rule_that_prometheus_rejects_does_not_affect_other_rules(fixed: Server, tmp_path: Path) -> None:
    async with importing(fixed.url, tmp_path / "config.yaml", WRONG, KNOWN, FOUND) as (imports, names):
        await until(lambda: names() == ("my_hostile", "my_odd", "queue_depth"))
        await until(lambda: imports.files[0].errors.get("sum(depth)", "").startswith("bad query: "))


async def test_changed_file_is_reloaded_and_invalid_file_is_ignored(
    fixed: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.metrics.imported_rules._POLL_SECONDS", 0.05)
    path = tmp_path / "config.yaml"
    async with importing(fixed.url, path, KNOWN) as (imports, names):
        await until(lambda: names() == ("queue_depth",))
        path.write_text(json.dumps({"externalRules": [{**KNOWN, "name": {"as": "renamed"}}]}))
        await until(lambda: names() == ("renamed",))
        path.write_text("not: [yaml")
        await until(lambda: "" in imports.files[0].errors)
        assert names() == ("renamed",)
        imports.set_files(())
        await until(lambda: names() == ())


async def test_read_uses_the_rendered_query(fixed: Server, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(json.dumps({"externalRules": [KNOWN]}))
    file = PrometheusAdapterFile(str(tmp_path / "config.yaml"), "prometheus")
    async with backend(fixed.url) as prometheus:
        read = reader(prometheus)
        running = asyncio.create_task(ImportedRules(read.registry, read.sources.fetcher, (file,)).run())
        await until(lambda: bool(read.names("shop")))
        trace = await read.read("shop", "QUEUE_depth", parse("queue in (a,b)"))
        assert trace.query is not None
        assert trace.query.text == 'sum(depth{queue=~"a|b",namespace="shop"})'
        assert [sample.milli for sample in trace.samples] == [7500]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
