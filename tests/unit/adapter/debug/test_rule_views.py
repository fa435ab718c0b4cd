"""The view of rules: what tenants use of their limits."""

import asyncio

import pytest

from adapter import errors
from adapter.config.model import TenantLimits
from adapter.debug.rule_views import rules_view
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.metrics.tenant_budgets import TenantBudgets
from adapter.rules.rule import Namespacing, Rule, TenantRule
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


async def test_failure_of_a_metric_that_is_not_read_here_any_more_is_not_reported():
    """Of two replicas, a follower may have read a metric only while it failed."""
    registry = RuleRegistry([Rule("a", backend="x", query="a", namespace=Namespacing())])
    backend = ScriptedBackend(results={"a": errors.BackendUnreachable("connection refused")})
    reader = MetricReader(registry, Sources(Fetcher({"x": backend}, loop_clock)), loop_clock)
    await reader.read("shop", "a", EVERYTHING)
    failing = rules_view(reader, {})["rules"][0]
    assert (failing["health"], failing["message"]) == (
        "failing",
        "metric 'a': x: unreachable: connection refused",
    )

    await asyncio.sleep(600)
    idle = rules_view(reader, {})["rules"][0]
    assert (idle["health"], idle["message"], idle["firstFailureTime"]) == ("idle", "", None)
    assert (idle["readers"], idle["failingReaders"]) == (0, 0)
    assert idle["lastRead"] == failing["lastRead"] == "2026-01-01T00:00:00.000Z"
    await reader.sources.aclose()


async def test_metric_that_has_a_rule_since_it_was_read_is_not_unknown():
    registry = RuleRegistry()
    reader = MetricReader(registry, Sources(Fetcher({}, loop_clock)), loop_clock)
    await reader.read("shop", "a", EVERYTHING)
    assert [each["metric"] for each in rules_view(reader, {})["unknownMetrics"]] == ["a"]
    registry.set_object_rule("shop/a", TenantRule("a", namespaces=("shop",), backend="x", query="a"))
    assert rules_view(reader, {})["unknownMetrics"] == []
