"""The simulation: workload models, start-up of pods, outages, and scenarios that are refused."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from autoscaler.settings import Settings
from autoscaler.simulation.backlog import backlog_at
from autoscaler.simulation.metric_history import MetricHistory, Outage
from autoscaler.simulation.run import MAX_EXPLAINED, collect
from autoscaler.simulation.scenario import Scenario, WorkloadModel
from autoscaler.simulation.simulation import InvalidScenario, Simulation
from autoscaler.types.limiting_factor import LimitingFactor
from autoscaler.types.spec import Metric
from autoscaler.types.steps import MetricFallbackStep
from autoscaler.values.quantity import Quantity
from tests.builders import (
    NO_STABILIZATION,
    NOW,
    make_autoscaler,
    make_container_metric,
    make_external_metric,
    make_fallback,
    make_object_metric,
    make_pods_metric,
    make_resource_metric,
    make_spec,
)

T0 = NOW.timestamp()


def history(*samples: tuple[float, float | None], max_age: float = 3600) -> MetricHistory:
    """Return samples at seconds after NOW."""
    times, values = zip(*samples, strict=True)
    milli = tuple(None if value is None else round(value * 1000) for value in values)
    return MetricHistory(tuple(T0 + time for time in times), milli, max_age)


def scenario(*metrics: Metric, samples=((0, 15),), minutes: float = 5, replicas: int = 3, **parts) -> Scenario:
    spec = make_spec(*(metrics or (make_external_metric(),)), behavior=NO_STABILIZATION)
    histories = (history(*samples),) * len(spec.metrics or ())
    end = NOW + timedelta(minutes=minutes)
    return replace(Scenario(make_autoscaler(spec), histories, NOW, end, replicas), **parts)


def replicas_of(simulated: Scenario) -> list[int]:
    return list(collect(Simulation(simulated)).replicas)


def test_sample_applies_until_the_next_one_or_until_it_is_too_old():
    recorded = history((0, 1), (10, None), (20, 2), max_age=30)
    found = [recorded.at(T0 + second) for second in (-1, 0, 9, 10, 20, 49, 50)]
    assert found == [None, 1000, 1000, None, 2000, 2000, None]


def test_changes_are_samples_and_begins_of_gaps():
    recorded = history((0, 1), (10, 2), (100, 3), max_age=30)
    assert [time - T0 for time in recorded.changes(T0, T0 + 100)] == [10, 30, 40]


def test_recorded_values_do_not_depend_on_the_replicas():
    assert replicas_of(scenario(samples=((0, 15), (60, 50)), minutes=2)) == [3, 3, 3, 3, 7, 10, 10, 10]


def test_object_metrics_are_read():
    metric = make_object_metric(average="5")
    assert replicas_of(scenario(metric, samples=((0, 15), (60, 30)), minutes=1.5))[-1] == 6


def test_gap_makes_the_metric_unavailable_and_the_demand_unknown():
    for metric in (make_external_metric(), make_object_metric(average="5")):
        recorded = scenario(metric, samples=((0, 15), (30, None), (60, 25)), minutes=1.25)
        run = collect(Simulation(recorded))
        assert list(run.unavailable) == [0, 0, 1, 1, 0]
        assert list(map(str, run.demand)) == ["3.0", "3.0", "nan", "nan", "5.0"]


def test_new_replicas_are_ready_after_the_startup_time_and_the_newest_are_removed():
    simulated = scenario(samples=((0, 15), (30, 25), (90, 20)), minutes=2, startup=timedelta(seconds=40))
    run = collect(Simulation(simulated))
    assert list(run.replicas) == [3, 3, 5, 5, 5, 5, 4, 4]
    assert list(run.ready) == [3, 3, 3, 3, 3, 5, 4, 4]


def test_metric_of_pods_is_the_total_divided_by_the_ready_replicas():
    metric = make_pods_metric(average="10")
    simulated = scenario(metric, samples=((0, 30), (30, 60), (60, None)), minutes=1.25, model=WorkloadModel.PER_POD)
    run = collect(Simulation(replace(simulated, startup=timedelta(seconds=20))))
    assert list(run.replicas) == [3, 3, 6, 6, 6]
    assert list(run.values[0])[:4] == [10, 10, 20, 20]
    assert list(run.demand)[:4] == [3, 3, 6, 6]
    assert list(run.unavailable) == [0, 0, 0, 0, 1]


def test_utilization_needs_the_requests_of_the_pods():
    simulated = scenario(make_resource_metric(utilization=50), samples=((0, 6),), model=WorkloadModel.PER_POD)
    assert set(collect(Simulation(simulated)).unavailable) == {1}
    requests = {"cpu": Quantity.parse("1")}
    assert replicas_of(replace(simulated, requests=requests))[-1] == 12


def test_value_target_of_an_external_metric_is_compared_with_the_value_per_replica():
    metric = make_external_metric(value="10")
    simulated = scenario(metric, samples=((0, 30), (30, 60)), minutes=1.25, model=WorkloadModel.PER_POD)
    assert replicas_of(simulated) == [3, 3, 6, 6, 6]


def test_backlog_grows_with_arrivals_and_shrinks_with_ready_replicas():
    arrivals = history((0, 3), (10, 0), max_age=100)
    after = [backlog_at(0.0, T0, T0 + end, arrivals, (T0, T0 + 5), 1.0) for end in (5, 10, 15, 30)]
    assert after == [10, 15, 5, 0]


def test_queue_closes_the_loop():
    metric = make_external_metric(average="30")
    simulated = scenario(metric, samples=((0, 10),), minutes=20, model=WorkloadModel.QUEUE, service_rate=1.0)
    run = collect(Simulation(simulated))
    assert run.values[0][0] == 0
    assert run.replicas[-1] == 10  # as many as the arrivals need
    assert run.values[0][-1] == run.values[0][-2] > 0  # the backlog that asks for them remains


def test_outage_activates_the_fallback_after_the_failure_duration():
    metric = make_external_metric(fallback=make_fallback(7))
    outage = Outage(T0 + 50, T0 + 400)
    run = collect(Simulation(scenario(metric, samples=((0, 15),), minutes=10, outages=(outage,))))
    fallback = [time - T0 for time, active in zip(run.times, run.fallback, strict=True) if active]
    assert (fallback[0], fallback[-1]) == (240, 390)  # the first failed read is at 60 s
    assert max(run.replicas) == 7
    assert set(run.demand) == {3.0}  # the load is what it was


@pytest.mark.parametrize(
    "metric", [make_object_metric(average="5"), make_pods_metric(average="5"), make_resource_metric(average="5")]
)
def test_outage_makes_every_type_of_metric_unavailable(metric: Metric):
    outage = Outage(T0, T0 + 60)
    simulated = scenario(metric, outages=(outage,), minutes=1.25, model=WorkloadModel.PER_POD)
    assert list(collect(Simulation(simulated)).unavailable) == [1, 1, 1, 1, 0]


def test_decision_is_made_when_the_failure_duration_ends():
    metric = make_external_metric(fallback=make_fallback(7, seconds=200))
    simulation = Simulation(scenario(metric, outages=(Outage(T0, T0 + 600),), minutes=5))
    first = next(
        step for step in simulation.run() if any(isinstance(one, MetricFallbackStep) for one in step.decision.steps)
    )
    assert first.decision.at == NOW + timedelta(seconds=200)


def test_changes_of_replicas_and_limiting_factor_are_explained():
    run = collect(Simulation(scenario(samples=((0, 15), (60, 50)), minutes=2)))
    assert run.rescales == [(4, 3, 7), (5, 7, 10)]
    assert [*run.explained] == [0, 4, 5, 6]
    assert run.explained[4][0] == NOW + timedelta(seconds=60)


def test_number_of_explained_decisions_is_bounded():
    samples = tuple((15.0 * index, 10 + 20 * (index % 2)) for index in range(MAX_EXPLAINED + 50))
    run = collect(Simulation(scenario(samples=samples, minutes=len(samples) / 4)))
    assert len(run.explained) == MAX_EXPLAINED
    assert run.omitted == 50


def test_scale_to_zero_and_back():
    spec = make_spec(make_external_metric(), minimum=0, behavior=NO_STABILIZATION)
    simulated = Scenario(
        make_autoscaler(spec), (history((0, 10), (60, 0), (120, 10)),), NOW, NOW + timedelta(minutes=3), 2
    )
    assert replicas_of(simulated) == [2, 2, 2, 2, 0, 0, 0, 0, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"histories": ()}, "0 histories for 1 metrics"),
        ({"end": NOW}, "the end is not after the start"),
        (
            {"end": NOW + timedelta(days=3650), "settings": Settings(sync_period=timedelta(seconds=1))},
            "more than 5,000,000",
        ),
        ({"settings": Settings(sync_period=timedelta(0))}, "the sync period must be at least one second"),
        ({"replicas": -1}, "must not be negative"),
        ({"service_rate": 0.0}, "the service rate must be greater than 0"),
        ({"autoscaler": make_autoscaler(make_spec(maximum=0))}, "spec.maxReplicas"),
        ({"autoscaler": make_autoscaler(make_spec(maximum=2**31 - 1))}, "more than 100,000 replicas"),
        ({"autoscaler": make_autoscaler(make_spec(make_pods_metric()))}, "use the model per-pod"),
    ],
)
def test_invalid_scenario_is_refused_before_it_starts(parts, problem):
    with pytest.raises(InvalidScenario, match=problem):
        Simulation(replace(scenario(), **parts))


def test_mixed_model_divides_only_metrics_of_pods():
    mixed = scenario(
        make_external_metric(average="5"),
        make_pods_metric(average="10"),
        samples=((0, 30), (60, 90)),
        model=WorkloadModel.MIXED,
    )
    run = collect(Simulation(mixed))
    assert {*run.values[0]} == {30.0, 90.0}  # the total: 6 and 18 replicas
    assert (run.values[1][0], run.replicas[0], run.values[1][1]) == (10.0, 6, 5.0)  # 30 / 3, then 30 / 6
    assert run.replicas[-1] == 18


def test_utilization_of_a_named_container_is_simulated():
    metric = make_container_metric(container="web")
    requests = {"cpu": Quantity.parse("500m")}
    per_pod = scenario(metric, samples=((0, 1.5),), model=WorkloadModel.PER_POD, requests=requests)
    assert replicas_of(per_pod)[-1] == 6


def test_demand_at_a_moment_is_that_of_the_given_replicas():
    simulation = Simulation(scenario(make_external_metric(value="10"), samples=((0, 15),), model=WorkloadModel.MIXED))
    assert [simulation.demand_at(NOW, replicas) for replicas in (2, 4)] == [3, 6]
    assert simulation.demand_at(NOW - timedelta(seconds=1), 3) is None


def test_times_of_other_zones_are_converted():
    start = datetime.fromisoformat("2026-03-01T13:00:00+01:00")
    simulation = Simulation(replace(scenario(), start=start))
    assert simulation.first_state().now == NOW
    assert simulation.first_state().now.tzinfo is UTC


def test_limiting_factor_is_recorded():
    spec = make_spec(make_external_metric(), maximum=4, behavior=NO_STABILIZATION)
    run = collect(Simulation(replace(scenario(samples=((0, 50),)), autoscaler=make_autoscaler(spec))))
    assert set(run.factors) == {list(LimitingFactor).index(LimitingFactor.MAX_REPLICAS)}
