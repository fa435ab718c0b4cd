"""Properties of simulations and of their measures."""

import itertools
from array import array
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from autoscaler.simulation.measures import measure
from autoscaler.simulation.metric_history import MetricHistory
from autoscaler.simulation.run import SimulatedRun, collect
from autoscaler.simulation.scenario import Scenario
from autoscaler.simulation.simulation import Simulation
from tests.builders import NOW, make_autoscaler, make_behavior, make_external_metric, make_rules, make_spec

pairs = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=30)


def run_of(points: list[tuple[int, int]], start: float = 0.0, factor: int = 1) -> SimulatedRun:
    count = len(points)
    supply = [point[0] * factor for point in points]
    return SimulatedRun(
        end=start + 15.0 * count,
        times=array("d", [start + 15.0 * index for index in range(count)]),
        replicas=array("l", supply),
        ready=array("l", supply),
        demand=array("d", [point[1] * factor for point in points]),
        values=[array("d", [point[1] * factor for point in points])],
        factors=bytearray(count),
        fallback=bytearray(count),
        unavailable=bytearray(count),
        rescales=[
            (index, before, after)
            for index, (before, after) in enumerate(itertools.pairwise(supply), 1)
            if before != after
        ],
    )


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_perfect_supply_is_neither_under_nor_over(demand):
    found = measure(run_of([(replicas, replicas) for replicas in demand]))
    assert (found.under_accuracy, found.over_accuracy, found.under_time_share, found.over_time_share) == (0, 0, 0, 0)
    assert (found.longest_under_seconds, found.jitter_per_hour) == (0, 0)


@given(pairs, st.integers(-1_000_000_000, 2_000_000_000))
def test_shift_in_time_changes_nothing(points, start):
    assert measure(run_of(points, float(start))) == measure(run_of(points))


@given(pairs)
def test_double_load_and_supply_double_the_areas(points):
    once, twice = asdict(measure(run_of(points))), asdict(measure(run_of(points, factor=2)))
    areas = ("under_accuracy", "over_accuracy", "replica_hours", "peak_value", "p99_value")
    assert [twice[name] for name in areas] == [2 * once[name] for name in areas]
    shares = ("under_time_share", "over_time_share", "longest_under_seconds", "rescales", "direction_changes")
    assert [twice[name] for name in shares] == [once[name] for name in shares]


@given(pairs)
def test_shares_and_areas_are_consistent(points):
    found = measure(run_of(points))
    assert 0 <= found.under_time_share + found.over_time_share <= 1 + 1e-9
    assert (found.under_accuracy > 0) == (found.under_time_share > 0) == (found.longest_under_seconds > 0)
    assert found.direction_changes <= max(found.rescales - 1, 0)


@given(st.lists(st.integers(1, 60_000), min_size=1, max_size=20))
def test_supply_without_delay_follows_the_demand(milli):
    """Without window, tolerance and rates the replicas are the demand after each decision."""
    rules = make_rules(window=0, tolerance="0")
    unlimited = replace(rules, policies=None)
    spec = make_spec(make_external_metric(average="5"), maximum=1000, behavior=make_behavior(unlimited, unlimited))
    start = NOW.timestamp()
    history = MetricHistory(tuple(start + 60 * index for index in range(len(milli))), tuple(milli), 1e9)
    scenario = Scenario(make_autoscaler(spec), (history,), NOW, NOW + timedelta(minutes=len(milli)), 1)
    run = collect(Simulation(scenario))
    assert list(run.replicas)[3::4] == list(run.demand)[3::4]  # doubled or 4 more in each of four decisions
