"""The budget of a namespace, through the fetcher, in virtual time."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from adapter.config.model import TenantLimits
from adapter.errors import OverBudget
from adapter.metrics.fetcher import Fetcher, FetchFailure, FetchResult
from adapter.metrics.snapshot import Snapshot
from adapter.metrics.tenant_budgets import TenantBudgets
from adapter.rules.query_builder import Query
from tests.fakes.backend import ScriptedBackend, loop_clock, raw

pytestmark = pytest.mark.looptime
DEADLINE = timedelta(seconds=5)


class Limited:
    """A fetcher of one backend with these limits."""

    def __init__(self, max_connections: int = 10, **limits: int) -> None:
        self.backend = ScriptedBackend(results={"three": (raw(1),) * 3, "two": (raw(1),) * 2})
        self.refused: Counter[str] = Counter()
        budgets = TenantBudgets(lambda: TenantLimits(**limits), lambda limit: self.refused.update([limit]))
        self.fetcher = Fetcher(
            {"b": self.backend}, loop_clock, budgets=budgets, max_connections=lambda _: max_connections
        )

    async def fetch(self, text: str, tenant: str = "shop") -> FetchResult:
        return await self.fetcher.fetch(Query("b", text, tenant=tenant), DEADLINE)


def message(result: FetchResult) -> str:
    assert isinstance(result, FetchFailure)
    assert isinstance(result.error, OverBudget)
    return result.error.message


async def test_queries_per_minute_are_limited_for_each_namespace():
    it = Limited(queries_per_minute=6)
    results = [await it.fetch(str(number)) for number in range(7)]
    assert [isinstance(result, Snapshot) for result in results] == [True] * 6 + [False]
    assert message(results[-1]) == (
        "namespace 'shop' has reached tenantLimits.queriesPerMinute: use longer intervals or fewer objects"
    )
    assert isinstance(await it.fetch("7", "bank"), Snapshot)
    assert isinstance(await it.fetch("7", ""), Snapshot)
    await asyncio.sleep(10)
    assert isinstance(await it.fetch("8"), Snapshot), "a query every ten seconds"
    assert "queriesPerMinute" in message(await it.fetch("9"))
    assert it.refused == {"queriesPerMinute": 2}


async def test_operator_has_no_budget():
    it = Limited(queries_per_minute=1, max_series=1)
    assert all([isinstance(await it.fetch("three", ""), Snapshot) for _ in range(10)])


async def test_series_in_memory_are_limited_for_each_namespace():
    it = Limited(max_series=5)
    three = await it.fetch("three")
    again = await it.fetch("three")
    assert isinstance(again, Snapshot), "a new snapshot replaces the previous one"
    two = await it.fetch("two")
    assert isinstance(two, Snapshot)
    it.backend.results["one"] = (raw(1),)
    assert message(await it.fetch("one")) == (
        "namespace 'shop' has reached tenantLimits.maxSeries: aggregate series in the query or use fewer objects"
    )
    assert isinstance(await it.fetch("one", "bank"), Snapshot)
    del two, three
    assert isinstance(await it.fetch("one"), Snapshot), "the other snapshot is no longer in memory"


async def test_refused_result_does_not_make_room_for_others():
    it = Limited(max_series=4)
    held = [await it.fetch("three")]
    assert "maxSeries" in message(await it.fetch("two"))
    assert "maxSeries" in message(await it.fetch("two"))
    assert dict(it.fetcher.budgets)["shop"].series == 3
    assert held


async def test_concurrent_queries_wait_within_their_deadline():
    it = Limited(max_concurrent_queries=2)
    it.backend.delay = 2
    results = await asyncio.gather(*(it.fetch(str(number)) for number in range(7)))
    assert [isinstance(result, Snapshot) for result in results] == [True] * 4 + [False] * 3
    assert message(results[6]).startswith("namespace 'shop' has reached tenantLimits.maxConcurrentQueries: no free")
    assert it.refused == {"maxConcurrentQueries": 1}
    assert isinstance(results[4], FetchFailure)
    assert results[4].error.message == "no response within 5s", "it started after four seconds"


async def test_deadline_of_a_query_that_waited_is_shortened():
    it = Limited(max_concurrent_queries=1)
    seen: list[float] = []
    fetch = it.backend.fetch

    async def recorded(query: Query, deadline: timedelta) -> tuple:
        seen.append(deadline.total_seconds())
        return await fetch(query, deadline)

    it.backend.fetch = recorded  # type: ignore[method-assign]
    it.backend.delay = 2
    await asyncio.gather(it.fetch("a"), it.fetch("b"))
    assert seen == [5, 3]


async def test_new_limits_take_effect_at_once():
    limits = [TenantLimits(queries_per_minute=1)]
    fetcher = Fetcher({"b": ScriptedBackend()}, loop_clock, budgets=TenantBudgets(lambda: limits[0]))
    query = Query("b", "q", tenant="shop")
    assert isinstance(await fetcher.fetch(query, DEADLINE), Snapshot)
    assert isinstance(await fetcher.fetch(query, DEADLINE), FetchFailure)
    limits[0] = TenantLimits(queries_per_minute=6000)
    await asyncio.sleep(0.1)
    assert isinstance(await fetcher.fetch(query, DEADLINE), Snapshot)
