"""Equal queries of two tenants: nothing that one tenant does has an effect on the other."""

import asyncio
from datetime import timedelta

import pytest

from adapter.backends.resilience.rate_limit import OPERATOR
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.snapshot import Snapshot
from adapter.metrics.sources import Sources
from adapter.rules.query_builder import snapshot_query, template_query
from adapter.rules.rule import Rule, TenantRule
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.values.selector import Selector, parse
from tests.fakes.backend import ScriptedBackend, loop_clock, raw

pytestmark = pytest.mark.looptime
EVERYTHING = Selector()


def tenant_rule(namespace: str, interval: float, deadline: float = 5) -> TenantRule:
    return TenantRule(
        "m",
        namespaces=(namespace,),
        backend="b",
        query="q",
        interval=timedelta(seconds=interval),
        deadline=timedelta(seconds=deadline),
    )


def two_tenants(backend: ScriptedBackend, **hostile: float) -> MetricReader:
    registry = RuleRegistry()
    registry.set_object_rule("good/m", tenant_rule("good", 60))
    registry.set_object_rule("bad/m", tenant_rule("bad", **{"interval": 5, **hostile}))
    return MetricReader(registry, Sources(Fetcher({"b": backend}, loop_clock)), loop_clock)


async def test_short_interval_of_one_tenant_is_not_the_interval_of_the_other():
    backend = ScriptedBackend(results={"q": (raw(1, namespace="good"),)})
    reader = two_tenants(backend)
    await reader.read("good", "m", EVERYTHING)
    await reader.read("bad", "m", EVERYTHING)
    query = snapshot_query(tenant_rule("good", 60))
    first = reader.sources.snapshots.peek(query)
    await asyncio.sleep(30)
    assert backend.fetches["q"] > 5
    assert reader.sources.snapshots.peek(query) is first
    await reader.sources.aclose()


async def test_changed_rule_of_one_tenant_does_not_drop_the_snapshot_of_the_other():
    backend = ScriptedBackend(results={"q": (raw(1, namespace="good"),)})
    reader = two_tenants(backend)
    await reader.read("good", "m", EVERYTHING)
    query = snapshot_query(tenant_rule("good", 60))
    first = reader.sources.snapshots.peek(query)
    for interval in (6, 7, 8):
        reader.registry.set_object_rule("bad/m", tenant_rule("bad", interval))
    reader.registry.set_object_rule("bad/m", None)
    assert isinstance(first, Snapshot)
    assert reader.sources.snapshots.peek(query) is first
    await reader.sources.aclose()


async def test_long_deadline_of_one_tenant_is_not_the_deadline_of_the_other():
    backend = ScriptedBackend(delay=30)
    reader = two_tenants(backend, deadline=60)
    reads = [asyncio.create_task(reader.read(name, "m", EVERYTHING)) for name in ("bad", "good")]
    await asyncio.sleep(6)
    assert [read.done() for read in reads] == [False, True]
    await asyncio.gather(*reads)
    await reader.sources.aclose()


def test_queries_are_sent_on_behalf_of_the_namespace_that_causes_them():
    template = Rule("m", backend="b", query="x{<<.LabelMatchers>>}")
    assert snapshot_query(tenant_rule("shop", 15)).namespace == "shop"
    assert snapshot_query(Rule("m", backend="b", query="q")).namespace == OPERATOR
    assert template_query(template, "shop", parse("a=b")).namespace == "shop", "a caller can make up selectors"
