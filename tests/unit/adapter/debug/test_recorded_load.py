"""The recorded load of a replay: totals of metrics, gaps, and what cannot be replayed."""

from datetime import timedelta

import pytest

from adapter.debug.recorded_load import RecordedLoad, RecordedPoint, histories_of, points_gaps
from adapter.debug.replayed_load import logged_load, recorded_load
from adapter.debug.timeline import Timeline
from adapter.decoding.problem import ConfigInvalid
from adapter.history.coverage import Gap
from adapter.history.reader import RecordedPeriod
from adapter.history.records import DecisionRecord, record_of
from autoscaler.types.observation import UnavailableTarget
from autoscaler.types.spec import Metric
from tests.builders import (
    NOW,
    ReconcileInput,
    external_reading,
    later,
    make_autoscaler,
    make_external_metric,
    make_pods_metric,
    make_resource_metric,
    make_spec,
    pod_reading,
    run_reconciles,
    unavailable_reading,
)

T0 = NOW.timestamp()
PERIOD = timedelta(seconds=15)
QUEUE = make_external_metric("queue")


def decisions(*readings, metric: Metric = QUEUE, **target):
    inputs = [ReconcileInput(15 * index, (reading,), **target) for index, reading in enumerate(readings)]
    return list(run_reconciles(make_spec(metric), inputs))


def load_of(*readings, metric: Metric = QUEUE) -> RecordedLoad:
    timeline = Timeline()
    for decision in decisions(*readings, metric=metric):
        timeline.add(decision, 10_000)
    return timeline.load(T0 + 3600)


def point(second: float, replicas: int, *totals: int | None) -> RecordedPoint:
    return RecordedPoint(T0 + second, replicas, replicas, totals)


@pytest.mark.parametrize(
    ("metric", "reading", "total"),
    [
        (make_external_metric("queue", average="5"), external_reading(20), 20_000),  # 6.667 per replica, rounded up
        (make_external_metric("queue", average="5"), external_reading(123456.789), 123_456_800),  # seven digits
        (make_external_metric("queue", value="7"), external_reading(20), 20_000),
        (make_pods_metric(average="1"), pod_reading(500, 700, 900), 2_100),
        (make_resource_metric(utilization=50), pod_reading(500, 500, 500), 1_500),  # 50 % of three requests of 1
    ],
)
def test_total_of_a_metric_is_not_rounded_per_replica(metric, reading, total):
    assert load_of(reading, metric=metric).points[0].totals == (total,)


def test_failed_reads_have_no_value_and_reconciles_without_reads_keep_the_last_one():
    timeline = Timeline()
    inputs = [
        ReconcileInput(0, (external_reading(15),)),
        ReconcileInput(15, (external_reading(15),), target=UnavailableTarget("not found")),
        ReconcileInput(30, (unavailable_reading(),)),
    ]
    for decision in run_reconciles(make_spec(QUEUE), inputs):
        timeline.add(decision, 10_000)
    assert [each.totals for each in timeline.load(T0 + 60).points] == [(15_000,), (15_000,), (None,)]


def test_replicas_are_those_that_the_next_decision_observed():
    dry_run, inputs = make_spec(QUEUE, mode="DryRun"), [ReconcileInput(15 * i, (external_reading(90),)) for i in (0, 1)]
    timeline = Timeline()
    for decision in run_reconciles(dry_run, inputs):
        timeline.add(decision, 10_000)
    assert [each.replicas for each in timeline.load(T0 + 30).points] == [3, 3]
    assert [each.replicas for each in load_of(external_reading(30), external_reading(30)).points] == [6, 6]


def test_distance_between_different_points_is_a_gap():
    points = [point(0, 3, 1), point(900, 3, 1), point(915, 4, 2), point(2000, 3, 2)]
    assert points_gaps(points, PERIOD) == [(T0 + 1215, T0 + 2000)]
    assert points_gaps(points, timedelta(minutes=10)) == []


def test_load_has_no_values_in_gaps_and_continues_after_them():
    load = RecordedLoad(("queue",), (point(0, 3, 1), point(100, 4, 2), point(300, 5, 3)), T0 + 400)
    hidden = load.with_gaps([(T0 - 50, T0 + 10), (T0 + 150, T0 + 200), (T0 + 390, T0 + 500)])
    assert [(each.time - T0, each.replicas, each.totals[0]) for each in hidden.points] == [
        (0, 3, None),
        (10, 3, 1),
        (100, 4, 2),
        (150, 4, None),
        (200, 4, 2),
        (300, 5, 3),
        (390, 5, None),
    ]


def test_load_begins_when_the_target_has_replicas():
    load = RecordedLoad(("queue",), (point(0, 0, 1), point(15, 2, 1)), T0 + 60)
    assert load.without_empty_start().points == (point(15, 2, 1),)
    with pytest.raises(ConfigInvalid, match="no replicas in this period"):
        load._replace(points=load.points[:1]).without_empty_start()


def test_metrics_of_the_same_name_have_their_own_values():
    cpu, other = make_resource_metric(utilization=50), make_resource_metric(utilization=70)
    load = RecordedLoad(("cpu", "cpu"), (point(0, 3, 1, 2),), T0 + 60)
    assert [each.milli for each in histories_of(load, [cpu, other], [cpu, other])] == [(1,), (2,)]
    with pytest.raises(ConfigInvalid, match=r"spec.metrics\[2\]: no values of cpu were recorded"):
        histories_of(load, [cpu, other], [cpu, other, cpu])


def test_utilization_cannot_be_replayed_as_an_average_value():
    load = RecordedLoad(("cpu",), (point(0, 3, 1),), T0 + 60)
    with pytest.raises(ConfigInvalid, match=r"spec.metrics\[0\]: utilizations and values cannot be converted"):
        histories_of(load, [make_resource_metric(utilization=50)], [make_resource_metric(average="500m")])


def test_decision_log_is_replayed_until_one_sync_period_after_the_last_decision():
    timeline, made = Timeline(), decisions(external_reading(15), external_reading(20))
    for decision in made:
        timeline.add(decision, 10_000)
    copied = timeline.copy()
    timeline.add(decisions(external_reading(99), external_reading(98), external_reading(97))[-1], 10_000)
    load = logged_load(copied, made[-1].at, PERIOD)
    assert (len(load.points), load.end) == (2, T0 + 30)


def test_decision_history_is_replayed_from_the_record_in_force_with_its_gaps():
    first, second = decisions(external_reading(15), external_reading(30))
    autoscaler = make_autoscaler()
    records = (record_of(autoscaler, first), record_of(autoscaler, second), DecisionRecord(at=later(400), deleted=True))
    gap = Gap(later(100), later(200), "no leader")
    load = recorded_load(RecordedPeriod(later(5), later(600), records, (gap,), NOW, later(500)))
    assert [(each.time - T0, each.totals[0]) for each in load.points] == [
        (5, 15_000),
        (15, 30_000),
        (100, None),
        (200, 30_000),
    ]
    assert load.end == T0 + 500


def test_empty_decision_history_cannot_be_replayed():
    with pytest.raises(ConfigInvalid, match="no decision is recorded in this period"):
        recorded_load(RecordedPeriod(NOW, later(600), (), (), None, None))
