"""Every measure against a case computed by hand."""

import itertools
from array import array
from math import nan

import pytest

from autoscaler.simulation.measures import measure
from autoscaler.simulation.run import SimulatedRun


def run_of(supply: list[int], demand: list[float], *, period: float = 60, **columns) -> SimulatedRun:
    """Return a run with one decision per period; rescales are the changes of the supply."""
    count = len(supply)
    rescales = [
        (index, before, after) for index, (before, after) in enumerate(itertools.pairwise(supply), 1) if before != after
    ]
    return SimulatedRun(
        end=count * period,
        times=array("d", [index * period for index in range(count)]),
        replicas=array("l", columns.get("replicas", supply)),
        ready=array("l", supply),
        demand=array("d", demand),
        values=[array("d", columns.get("values", demand))],
        factors=bytearray(count),
        fallback=bytearray(columns.get("fallback", [0] * count)),
        unavailable=bytearray(count),
        rescales=rescales,
    )


CASE = measure(run_of([2, 2, 4, 4, 3, 3], [2, 5, 5, 4, 2, 3]))
"""Six minutes. Missing: 0 3 1 0 0 0, surplus: 0 0 0 0 1 0."""


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("duration_seconds", 360),
        ("unknown_seconds", 0),
        ("replica_hours", (2 + 2 + 4 + 4 + 3 + 3) / 60),
        ("under_accuracy", 4 / 6),
        ("over_accuracy", 1 / 6),
        ("under_time_share", 2 / 6),
        ("over_time_share", 1 / 6),
        ("longest_under_seconds", 120),
        ("rescales", 2),
        ("direction_changes", 1),
        ("jitter_per_hour", (2 - 4) / 0.1),
        ("steps", 1),
        ("catch_up_seconds", 120),
        ("catch_up_max_seconds", 120),
        ("fallback_seconds", 0),
        ("peak_value", 5),
    ],
)
def test_measure_has_the_value_computed_by_hand(field: str, expected: float):
    assert getattr(CASE, field) == pytest.approx(expected)


def test_unknown_demand_counts_for_replica_hours_only():
    found = measure(run_of([1, 1, 1], [2, nan, 1]))
    assert found.replica_hours == pytest.approx(0.05)
    assert (found.unknown_seconds, found.under_time_share, found.longest_under_seconds) == (60, 0.5, 60)


def test_run_without_any_demand_has_no_shares():
    found = measure(run_of([1, 1], [nan, nan], values=[nan, nan]))
    assert (found.under_accuracy, found.over_time_share, found.peak_value, found.p99_value) == (0, 0, None, None)
    assert (found.catch_up_seconds, found.steps) == (None, 0)


def test_starting_replicas_cost_but_do_not_supply():
    found = measure(run_of([1, 1], [3, 3], replicas=[3, 3]))
    assert found.replica_hours == pytest.approx(0.1)
    assert found.under_accuracy == 2


def test_catch_up_ends_when_the_demand_falls_to_the_supply_or_the_run_ends():
    falls = measure(run_of([2, 2, 2], [2, 6, 2]))
    never = measure(run_of([2, 2, 2], [2, 6, 7]))
    assert (falls.catch_up_seconds, never.catch_up_seconds) == (60, 120)


def test_median_of_catch_ups_is_one_of_them():
    found = measure(run_of([2, 2, 9, 2, 9, 2, 2, 2, 9], [2, 9, 9, 2, 9, 2, 9, 9, 9]))
    assert (found.steps, found.catch_up_seconds, found.catch_up_max_seconds) == (3, 60, 120)


def test_quantile_is_weighted_by_time():
    found = measure(run_of([1] * 200, [1] * 200, values=[*range(198), 1000, 5000]))
    assert (found.p99_value, found.peak_value) == (197, 5000)


def test_time_in_fallback_is_summed():
    assert measure(run_of([1, 1, 1], [1, 1, 1], fallback=[0, 1, 1])).fallback_seconds == 120
