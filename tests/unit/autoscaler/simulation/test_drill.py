"""The outage drill: needs, replays from checkpoints, and what a fallback covers."""

from array import array
from datetime import timedelta
from math import nan

import pytest
from msgspec.structs import replace

from autoscaler.simulation.drill import effective_after, run_drill, with_checkpoints, with_fallback
from autoscaler.simulation.metric_history import MetricHistory, Outage
from autoscaler.simulation.needs import needs, needs_by_hour_of_week, quantile
from autoscaler.simulation.run import SimulatedRun, collect
from autoscaler.simulation.scenario import Scenario
from autoscaler.simulation.simulation import Simulation, SimulationState
from tests.builders import (
    NO_STABILIZATION,
    NOW,
    make_autoscaler,
    make_external_metric,
    make_fallback,
    make_pods_metric,
    make_spec,
)

T0 = NOW.timestamp()
LENGTH = timedelta(minutes=20)


def scenario(*values: float, minutes: int = 60) -> Scenario:
    """Return a scenario with a value for each ten minutes, and a target of 5 per replica."""
    times = tuple(T0 + 600 * index for index in range(len(values)))
    history = MetricHistory(times, tuple(round(value * 1000) for value in values), 3600)
    spec = make_spec(make_external_metric(), maximum=20, behavior=NO_STABILIZATION)
    return Scenario(make_autoscaler(spec), (history,), NOW, NOW + timedelta(minutes=minutes), 3)


def checkpoints(simulation: Simulation, *moments: float) -> list[SimulationState]:
    """Return the states at some seconds after the start."""
    found: list[SimulationState] = []
    assert len(list(with_checkpoints(simulation.run(), [T0 + moment for moment in moments], found))) == 240
    return found


def run_of(*demand: float) -> SimulatedRun:
    run = SimulatedRun(end=60.0 * len(demand))
    run.times, run.demand = array("d", [60.0 * index for index in range(len(demand))]), array("d", demand)
    return run


def test_need_is_the_highest_demand_while_the_fallback_can_be_active():
    assert needs(run_of(1, 2, 9, 3, 4, 1), begin=60, length=180, maximum=100) == [9, 9, 4, 4]


def test_need_is_limited_and_unknown_demand_is_left_out():
    assert needs(run_of(nan, nan, nan, 50, 4), begin=0, length=120, maximum=20) == [20, 20]


def test_needs_by_hour_of_week_have_the_highest_of_each_hour():
    run = run_of(*([2.0] * 60 + [7.0] * 30 + [3.0] * 60))
    grid = needs_by_hour_of_week(run, 0, 60, 20)  # 1970-01-01 was a Thursday
    assert [hour for hour in grid[3] if hour is not None] == [2, 7, 3]
    assert {hour for day in (*grid[:3], *grid[4:]) for hour in day} == {None}


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1), (0.5, 2), (0.75, 3), (0.99, 9), (1.0, 9)])
def test_quantile_is_one_of_the_values(share, expected):
    assert quantile([3, 1, 9, 2], share) == expected


def test_fallback_of_external_metrics_is_replaced():
    spec = make_spec(make_external_metric(fallback=make_fallback(5)), make_pods_metric())
    changed = with_fallback(spec, make_fallback(8))
    external = (changed.metrics or ())[0].external
    assert external is not None
    assert external.fallback == make_fallback(8)
    assert with_fallback(changed, None) == with_fallback(spec, None)


def test_effect_of_a_fallback_begins_after_failure_duration_startup_and_two_periods():
    started = replace(scenario(15), startup=timedelta(seconds=40))
    assert effective_after(started, make_fallback(5, seconds=300)) == 370
    assert effective_after(started, None) == effective_after(started, make_fallback(5, seconds=None)) == 250


def test_replay_from_a_checkpoint_equals_a_run_with_the_outage():
    simulated = scenario(15, 40, 25, 60, 15, 15)
    simulation = Simulation(simulated)
    (state,) = checkpoints(simulation, 700)
    outage = Outage(state.now.timestamp(), state.now.timestamp() + 1200)
    whole = collect(Simulation(replace(simulated, outages=(outage,))))
    replayed = collect(simulation, simulation.run_from(state, simulated.end, (outage,)))
    assert list(replayed.replicas) == list(whole.replicas)[-len(replayed.replicas) :]
    assert replayed.times[0] == T0 + 705


def test_moments_between_decisions_share_the_next_one():
    simulation = Simulation(scenario(15))
    found = checkpoints(simulation, 16, 17, 31)
    assert [state.now.timestamp() - T0 for state in found] == [30, 30, 45]
    assert checkpoints(simulation, 999_999) == []


def test_outage_is_covered_if_the_fallback_meets_the_demand():
    simulated = scenario(15, 60, 60, 60, 60, 60)
    states = checkpoints(Simulation(simulated), 300, 400)
    fallbacks = {None: None, 8: make_fallback(8), 12: make_fallback(12)}
    results = {key: run_drill(simulated, states, LENGTH, fallback) for key, fallback in fallbacks.items()}
    assert [(result.outages, result.covered) for result in results.values()] == [(2, 0), (2, 0), (2, 2)]
    assert results[None].missing > results[8].missing > results[12].missing == 0.0
    assert results[None].under_share > 0.5
    assert results[12].coverage == 1
    assert results[12].replica_hours > results[8].replica_hours > results[None].replica_hours == 1


def test_demand_above_the_maximum_can_be_covered():
    simulated = scenario(15, 500, 500, 500)
    states = checkpoints(Simulation(simulated), 300)
    assert run_drill(simulated, states, LENGTH, make_fallback(20)).covered == 1
