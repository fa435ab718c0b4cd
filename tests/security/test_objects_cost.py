"""Many and frequently changed ExternalMetric objects: parsing, the budget of a namespace, and the event loop."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

import pytest

from adapter.config.model import TenantLimits
from adapter.custom_resources import watcher as watcher_module
from adapter.custom_resources.external_metric import MAX_SPEC_BYTES, rule_from_spec
from adapter.rules import rule_registry
from adapter.rules.query_builder import snapshot_query
from adapter.rules.rule import Rule, Series, TenantRule
from adapter.rules.rule_registry import RuleRegistry
from tests.unit.adapter.custom_resources.test_watcher import BACKENDS, Fixture, running
from tests.waiting import GIVE_UP

STATIC = [{"value": 1}]


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often each object is parsed."""
    count: Counter[str] = Counter()

    def counting(document: object, name: str, namespace: str, backends: Any) -> TenantRule:
        count[name] += 1
        return rule_from_spec(document, name, namespace, backends)

    monkeypatch.setattr(watcher_module, "rule_from_spec", counting)
    return count


@asynccontextmanager
async def with_objects(number: int) -> AsyncIterator[Fixture]:
    async with running() as here:
        for each in range(number):
            here.apply(f"o{each:03}", static=STATIC)
        await here.until(lambda: len(here.watcher.rules) == number)
        yield here


async def test_status_writes_parse_nothing(parses: Counter[str]):
    async with with_objects(20) as here:
        parses.clear()
        for number in range(20):
            here.cluster.patch(f"{here.path}/o{number:03}/status", {"status": {"lastValue": str(number)}})
        await here.until(lambda: all(each.status.get("lastValue") for each in here.watcher.store))
        here.apply("last", static=STATIC)
        await here.until(lambda: "shop/last" in here.watcher.rules)

        assert parses == {"last": 1}


async def test_change_of_one_object_parses_only_that_object(parses: Counter[str]):
    async with with_objects(20) as here:
        parses.clear()
        here.apply("o007", metric="seven", static=STATIC)
        await here.until(lambda: here.watcher.rules["shop/o007"].name == "seven")

        assert parses == {"o007": 1}


async def test_objects_beyond_the_budget_are_not_parsed_and_the_oldest_are_in_force(parses: Counter[str]):
    async with running(limits=TenantLimits(max_objects=3)) as here:
        for number in range(8):
            here.apply(f"o{number}", static=STATIC)
        await here.until(lambda: len(here.watcher.rules) + len(here.watcher.rejections) == 8)
        await here.status_writer.write_changes()

        assert set(parses) == set(here.in_force) == {"o0", "o1", "o2"}
        assert {each.name for each in here.watcher.store if each.spec} == {"o0", "o1", "o2"}
        assert here.ready("o7") == (
            "False",
            "BudgetExceeded",
            (
                "not in force: 3 older ExternalMetrics of the namespace are, and tenantLimits.maxObjects is 3;"
                " delete or shorten objects, or ask the operator of the cluster to raise the limit"
            ),
        )
        here.cluster.delete(f"{here.path}/o1")
        await here.until(lambda: here.in_force == ["o0", "o2", "o3"])
        await here.status_writer.write_changes()
        assert here.ready("o3")[1] == "NoSeries"  # of the backend of this test


async def test_bytes_of_a_namespace_are_limited_and_smaller_objects_still_fit():
    async with running(limits=TenantLimits(max_bytes=3000)) as here:
        here.apply("a", metric="a", labels=[f"{n:0>20}" for n in range(50)], static=STATIC)
        here.apply("b", metric="b", labels=[f"{n:0>20}" for n in range(64)], static=STATIC)
        here.apply("c", metric="c", labels=[f"{n:0>20}" for n in range(64)], static=STATIC)
        here.apply("d", static=STATIC)
        await here.until(lambda: len(here.watcher.rules) + len(here.watcher.rejections) == 4)
        await here.status_writer.write_changes()

        assert here.in_force == ["a", "b", "d"]
        assert here.ready("c")[1] == "BudgetExceeded"
        assert "tenantLimits.maxBytes is 3000" in here.ready("c")[2]


async def test_budgets_of_namespaces_are_independent_and_changes_of_limits_take_effect():
    async with running(limits=TenantLimits(max_objects=1)) as here:
        for namespace in ("shop", "bank"):
            for name in ("a", "b"):
                here.apply(name, namespace, static=STATIC)
        await here.until(lambda: len(here.watcher.rules) + len(here.watcher.rejections) == 4)
        assert set(here.watcher.rules) == {"shop/a", "bank/a"}

        here.watcher.configure(BACKENDS, TenantLimits(max_objects=2))
        await here.until(lambda: len(here.watcher.rules) == 4)
        here.watcher.configure(BACKENDS, TenantLimits(max_objects=1))
        await here.until(lambda: set(here.watcher.rules) == {"shop/a", "bank/a"})


async def test_spec_of_an_object_that_is_too_large_is_not_kept():
    async with running() as here:
        here.apply("large", static=[{"value": 1, "labels": {"a": "x" * 1000}}] * (MAX_SPEC_BYTES // 1000))
        await here.until(lambda: here.watcher.rejections)

        (metric_object,) = here.watcher.store
        assert metric_object.spec == b""
        (problem,) = here.watcher.problems["shop/large"]
        assert str(problem).startswith("spec: must have at most 65536 bytes as JSON")


async def test_parsing_many_objects_leaves_the_event_loop_to_others():
    """Compare the longest pause with the same work at once, in CPU time: the machine may be busy with other tests."""
    spec = {"backend": "main", "query": " or ".join(f"sum(rate(metric_{n}[5m]))" for n in range(25))}
    started = time.thread_time()
    for number in range(100):
        rule_from_spec(spec, f"o{number}", "shop", BACKENDS)
    at_once = time.thread_time() - started

    async with running(limits=TenantLimits(max_bytes=10_000_000)) as here:
        for number in range(100):
            here.apply(f"o{number}", **spec)
        await here.until(lambda: len(here.watcher.rules) == 100)
        here.watcher.configure({**BACKENDS, "other": BACKENDS["main"]}, TenantLimits(max_bytes=10_000_000))
        pauses, before = [], time.thread_time()
        async with asyncio.timeout(GIVE_UP):
            while here.watcher.is_updating:
                await asyncio.sleep(0)
                pauses.append(time.thread_time() - before)
                before = time.thread_time()

    assert len(pauses) > 1
    assert max(pauses) < at_once / 2


def test_change_of_one_rule_indexes_only_that_rule(monkeypatch: pytest.MonkeyPatch):
    registry = RuleRegistry([Rule(f"file-{n}", (Series(1.0),)) for n in range(1000)])
    for number in range(1000):
        registry.set_object_rule(f"ns{number}/a", TenantRule("a", (Series(1.0),), (f"ns{number}",)))
    build = Mock(wraps=snapshot_query)
    monkeypatch.setattr(rule_registry, "snapshot_query", build)
    for number in range(10):
        registry.set_object_rule("ns5/a", TenantRule("a", (Series(float(number)),), ("ns5",)))
        assert registry.rules.find("ns5", "a") is not None
        registry.rules_for_query(("static", "x", ""))

    assert build.call_count <= 20


def test_change_of_an_object_keeps_what_is_cached_for_other_namespaces():
    registry = RuleRegistry()
    before = {name: registry.rules.version(name) for name in ("shop", "bank")}
    registry.set_object_rule("shop/a", TenantRule("a", (Series(1.0),), ("shop",)))

    assert registry.rules.version("bank") == before["bank"]
    assert registry.rules.version("shop") > before["shop"]
    registry.set_file_rules([Rule("b", (Series(1.0),))])
    assert registry.rules.version("bank") > before["bank"]


async def test_spec_that_cannot_be_read_again_is_read_later(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watcher_module, "_RETRY_SECONDS", 0.1)
    async with running(limits=TenantLimits(max_objects=1)) as here:
        for name in ("a", "b"):
            here.apply(name, static=STATIC)
        await here.until(lambda: here.watcher.rejections)
        here.cluster.faults.fail_next(500, times=2, verb="list", within="externalmetrics")
        here.cluster.delete(f"{here.path}/a")

        await here.until(lambda: here.in_force == ["b"])
        assert not here.watcher.rejections
