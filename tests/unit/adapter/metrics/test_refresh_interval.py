from datetime import timedelta

import pytest

from adapter.metrics.refresh_interval import RefreshInterval

NO_LIMIT = timedelta()


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def adaptive(*durations: float, shortest: float = 0) -> float:
    """Return the interval after responses with these durations in seconds."""
    interval = RefreshInterval(adapts=True)
    interval.include(None)
    for duration in durations:
        interval.record(seconds(duration), seconds(shortest))
    return interval.current.total_seconds()


@pytest.mark.parametrize(
    ("durations", "expected"),
    [
        pytest.param([], 4, id="before the first response"),
        pytest.param([0.001], 4, id="cheap"),
        pytest.param([0.08], 4, id="at the lower bound"),
        pytest.param([0.101], 6, id="rounded up to whole seconds"),
        pytest.param([0.2], 10, id="fifty times the duration"),
        pytest.param([0.3], 15, id="at the upper bound"),
        pytest.param([5], 15, id="expensive"),
        pytest.param([0.01, 0.01, 0.3], 8, id="one slow response has half the effect"),
        pytest.param([0.8, *[0.01] * 4], 4, id="a slow first response is forgotten after some more"),
    ],
)
def test_adaptive_interval_is_fifty_times_the_duration_within_its_bounds(durations, expected):
    assert adaptive(*durations) == expected


@pytest.mark.parametrize(("shortest", "expected"), [(0, 4), (7.5, 8), (60, 15)])
def test_adaptive_interval_is_as_long_as_the_budget_requires_up_to_the_default(shortest, expected):
    assert adaptive(0.01, shortest=shortest) == expected


@pytest.mark.parametrize("adapts", [False, True])
def test_configured_interval_is_used_as_it_is(*, adapts: bool):
    interval = RefreshInterval(adapts=adapts)
    assert interval.include(seconds(30))
    interval.record(seconds(4), seconds(10))
    assert interval.current == seconds(30)


def test_interval_of_a_rule_without_one_is_the_default_if_it_does_not_adapt():
    interval = RefreshInterval(adapts=False)
    interval.include(None)
    interval.record(seconds(0.01), NO_LIMIT)
    assert interval.current == seconds(15)


def test_shortest_interval_of_all_rules_applies():
    interval = RefreshInterval(adapts=True)
    assert [interval.include(each) for each in (seconds(30), None, None, seconds(2), seconds(2), seconds(60))] == [
        True,
        True,
        False,
        True,
        False,
        False,
    ]
    interval.record(seconds(1), NO_LIMIT)
    assert interval.current == seconds(2)
