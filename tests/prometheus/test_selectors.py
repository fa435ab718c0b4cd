"""Selecting from a snapshot gives the same series as a query with the selector's matchers."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapter.metrics.snapshot import Snapshot
from adapter.rules.promql.matchers import NotExpressible, selector_matchers
from adapter.rules.query_builder import Query
from autoscaler.values.requirement import Requirement
from autoscaler.values.selector import Selector
from tests.prometheus.fixed_responses import NOW, backend
from tests.prometheus.server import Server

pytestmark = pytest.mark.prometheus

KEYS = st.sampled_from(["queue", "namespace", "tier", "absent"])
VALUES = st.sampled_from(["a", "b", "c", "a.b", "axb", "A", "shop", "bank", "gold", "7", "12", "-3", "", "other"])
REQUIREMENTS = st.one_of(
    st.builds(Requirement, KEYS, st.sampled_from(["=", "==", "!="]), st.tuples(VALUES)),
    st.builds(Requirement, KEYS, st.sampled_from(["in", "notin"]), st.lists(VALUES, min_size=1, max_size=4).map(tuple)),
    st.builds(Requirement, KEYS, st.sampled_from(["exists", "!"])),
)
SELECTORS = st.lists(REQUIREMENTS, max_size=4).map(Selector)


async def fetch_snapshot(server: Server) -> Snapshot:
    async with backend(server.url) as prometheus:
        rows = await prometheus.fetch(Query("prometheus", "depth"), timedelta(seconds=60))
    return Snapshot(rows, datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture(scope="module")
def snapshot(fixed: Server) -> Snapshot:
    return asyncio.run(fetch_snapshot(fixed))


def sort_key(labels: Any) -> str:
    return json.dumps(labels, sort_keys=True)


@given(selector=SELECTORS)
@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_selector_selects_the_same_series_from_a_snapshot_as_in_prometheus(
    fixed: Server, snapshot: Snapshot, selector: Selector
) -> None:
    expected = fixed.query(f"depth{{{','.join(selector_matchers(selector))}}}", time=str(NOW))
    assert sorted(sort_key(dict(row.labels)) for row in snapshot.select(selector)) == sorted(
        sort_key(series["metric"]) for series in expected
    )


@pytest.mark.parametrize(
    ("operator", "bound", "selected"),
    [pytest.param("gt", "7", {"12"}, id="greater"), pytest.param("lt", "8", {"7", "-3"}, id="less")],
)
def test_numeric_comparison_works_on_a_snapshot_and_has_no_matcher(
    snapshot: Snapshot, operator: str, bound: str, selected: set[str]
) -> None:
    selector = Selector([Requirement("tier", operator, (bound,))])
    assert {row.labels["tier"] for row in snapshot.select(selector)} == selected
    with pytest.raises(NotExpressible):
        selector_matchers(selector)
