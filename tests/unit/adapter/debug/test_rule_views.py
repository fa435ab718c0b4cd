"""The view of rules: what tenants use of their limits."""

import asyncio

import pytest

from adapter.config.model import TenantLimits
from adapter.debug.rule_views import rules_view
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader, Sources
from adapter.metrics.tenant_budgets import TenantBudgets
from adapter.rules.rule import TenantRule
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.values.selector import Selector
from tests.fakes.backend import ScriptedBackend, loop_clock, raw

pytestmark = pytest.mark.looptime
EVERYTHING = Selector()


async def test_limits_of_a_tenant_are_listed_with_their_use_and_refused_queries():
    registry = RuleRegistry()
    for name in ("a", "b", "c"):
        registry.set_object_rule(f"shop/{name}", TenantRule(name, namespaces=("shop",), backend="x", query=name))
    backend = ScriptedBackend(results={name: (raw(1, namespace="shop"),) * 2 for name in "abc"})
    budgets = TenantBudgets(lambda: TenantLimits(queries_per_minute=2, max_series=100))
    reader = MetricReader(registry, Sources(Fetcher({"x": backend}, loop_clock, budgets=budgets)), loop_clock)
    for name in ("a", "b", "c"):
        await reader.read("shop", name, EVERYTHING)
    (tenant,) = rules_view(reader, {})["tenants"]
    assert tenant["namespace"] == "shop"
    per_minute, concurrent, series, connections = tenant["limits"]
    assert per_minute == {
        "limit": "queriesPerMinute",
        "maximum": 2,
        "used": 2,
        "refusedQueries": 1,
        "isReached": True,
    }
    assert (series["maximum"], series["used"], series["isReached"]) == (100, 4, False)
    assert (concurrent["maximum"], concurrent["used"]) == (10, None)
    assert (connections["limit"], connections["maximum"]) == ("maxConnections", None)
    await reader.sources.aclose()
    await asyncio.sleep(300)
    (tenant,) = rules_view(reader, {})["tenants"]
    assert not any(limit["isReached"] for limit in tenant["limits"])


async def test_read_of_a_tenant_over_budget_names_the_limit():
    registry = RuleRegistry()
    registry.set_object_rule("shop/a", TenantRule("a", namespaces=("shop",), backend="x", query="a"))
    backend = ScriptedBackend(results={"a": (raw(1, namespace="shop"),) * 2})
    budgets = TenantBudgets(lambda: TenantLimits(max_series=1))
    reader = MetricReader(registry, Sources(Fetcher({"x": backend}, loop_clock, budgets=budgets)), loop_clock)
    trace = await reader.read("shop", "a", EVERYTHING)
    assert str(trace.error) == (
        "metric 'a': x: over budget: namespace 'shop' has reached tenantLimits.maxSeries:"
        " aggregate series in the query or use fewer objects"
    )
    await reader.sources.aclose()
