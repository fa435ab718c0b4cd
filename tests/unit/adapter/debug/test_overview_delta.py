"""Deltas of the overview: applied to the base, they result in the current overview."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adapter.debug.formatting import Json
from adapter.debug.overview_delta import overview_delta
from tests.browser.overviews import overviews


def applied(base: Json, delta: Json) -> Json:
    """Apply a delta as the page does; rows are sorted by key, because a delta does not contain their order."""
    result = {name: value for name, value in {**base, **delta["fields"]}.items() if name not in delta["gone"]}
    if "autoscalers" in delta:
        result["autoscalers"] = _patched(base["autoscalers"], delta["autoscalers"], autoscaler_key)
    if "rules" in delta:
        rules = _patched(base["rules"]["rules"], delta["rules"]["rules"], rule_key)
        result["rules"] = {**delta["rules"], "rules": rules}
    if "timeline" in delta:
        drop, keep, added = (delta["timeline"][name] for name in ("drop", "keep", "added"))
        old = base["selected"]["timeline"]

        def column(before: list[Any], after: list[Any]) -> list[Any]:
            return before[drop : drop + keep] + after

        metrics = [
            {name: more if name == "name" else column(before[name], more) for name, more in metric.items()}
            for before, metric in zip(old["metrics"], added["metrics"], strict=True)
        ]
        timeline = {name: column(old[name], added[name]) for name in ("time", "current", "replicas")}
        result["selected"] = {**result["selected"], "timeline": {**timeline, "metrics": metrics}}
    return result


def autoscaler_key(row: Json) -> str:
    return f"{row['namespace']}/{row['name']}"


def rule_key(row: Json) -> str:
    return f"{row['origin']} {row['name']} {','.join(row['namespaces'])}"


def _patched(rows: list[Json], delta: Json, key_of: Callable[[Json], str]) -> list[Json]:
    known = {key_of(row): row for row in rows}
    for removed in delta["removed"]:
        del known[removed]
    known |= {key_of(row): row for row in delta["changed"]}
    return list(known.values())


def _without_order(overview: Json) -> Json:
    rows = sorted(overview["autoscalers"], key=lambda row: (row["namespace"], row["name"]))
    result = {**overview, "autoscalers": rows}
    if "rules" in overview:
        rules = sorted(overview["rules"]["rules"], key=rule_key)
        result["rules"] = {**overview["rules"], "rules": rules}
    return result


@given(st.randoms(use_true_random=False))
def test_delta_applied_to_the_base_is_the_current_overview(random):
    base, *following = overviews(random, 4)
    for current in following:
        assert _without_order(applied(base, overview_delta(base, current))) == _without_order(current)
        base = current


@given(st.randoms(use_true_random=False))
def test_delta_contains_only_changed_rows_and_new_points(random):
    base, current = overviews(random, 2)
    delta = overview_delta(base, current)
    unchanged = [row for row in base["autoscalers"] if row in current["autoscalers"]]
    assert [row for row in delta.get("autoscalers", {"changed": []})["changed"] if row in unchanged] == []
    if "timeline" in delta:
        assert delta["fields"]["selected"]["timeline"] is None
    assert overview_delta(base, base) == {"fields": {}, "gone": []}
