"""The timeline: points, deduplication, memory limits."""

import tracemalloc

from msgspec.structs import replace

from adapter.debug.decision_log import MAX_BYTES, DecisionLog
from adapter.debug.timeline import Timeline
from autoscaler.types.autoscaler import Metadata
from autoscaler.types.observation import UnavailableTarget
from tests.builders import (
    ReconcileInput,
    external_reading,
    make_autoscaler,
    make_external_metric,
    make_fallback,
    make_resource_metric,
    make_spec,
    pod_reading,
    run_reconciles,
    unavailable_reading,
)

QUEUE = make_external_metric("queue", fallback=make_fallback(10, 30))


def timeline(*readings, metric=QUEUE, max_bytes: int = 10_000, **target) -> Timeline:
    points = Timeline()
    inputs = [ReconcileInput(15 * index, (reading,), **target) for index, reading in enumerate(readings)]
    for decision in run_reconciles(make_spec(metric), inputs):
        points.add(decision, max_bytes)
    return points


def test_point_contains_value_target_proposal_and_replicas():
    columns = timeline(external_reading(15), external_reading(30.5)).columns()

    assert columns["time"] == ["2026-03-01T12:00:00.000Z", "2026-03-01T12:00:15.000Z"]
    assert (columns["current"], columns["replicas"]) == ([3, 3], [3, 6])
    assert columns["metrics"] == [
        {"name": "queue", "value": [5, 10.167], "target": [5, 5], "proposal": [3, 7], "state": ["ok", "ok"]}
    ]


def test_failed_reads_and_fallback_have_their_own_state():
    metric = timeline(
        external_reading(15), unavailable_reading(), unavailable_reading(), unavailable_reading()
    ).columns()["metrics"][0]

    assert metric["state"] == ["ok", "failed", "failed", "fallback"]
    assert metric["value"] == [5, None, None, None]
    assert metric["proposal"] == [3, None, None, 10]


def test_utilization_is_in_percent():
    metric = timeline(pod_reading(500, 500, 500), metric=make_resource_metric(utilization=50)).columns()["metrics"][0]

    assert (metric["value"], metric["target"]) == ([50], [50])


def test_average_over_no_pods_is_not_a_value():
    metric = timeline(external_reading(15), status_replicas=0).columns()["metrics"][0]

    assert (metric["value"], metric["target"], metric["proposal"]) == ([None], [5], [3])


def test_reconcile_without_metric_reads_leaves_a_gap():
    points, spec = Timeline(), make_spec(QUEUE)
    not_found = UnavailableTarget("not found")
    for decision in run_reconciles(
        spec,
        [ReconcileInput(0, (external_reading(15),)), ReconcileInput(15, (external_reading(15),), target=not_found)],
    ):
        points.add(decision, 10_000)

    assert points.columns()["metrics"][0]["state"] == ["ok", "not_read"]


def test_constant_values_need_two_points():
    points = timeline(*[external_reading(15)] * 100)

    assert len(points) == 2
    assert points.columns()["time"][-1] == "2026-03-01T12:24:45.000Z"


def test_oldest_points_are_dropped_at_the_limit():
    points = timeline(*[external_reading(15 + index) for index in range(50)], max_bytes=10 * 33)

    assert len(points) == 10
    assert points.columns()["time"][-1] == "2026-03-01T12:12:15.000Z"


def test_points_are_dropped_when_the_metrics_of_the_spec_change():
    points = timeline(external_reading(15))
    for decision in run_reconciles(
        make_spec(make_external_metric("other")), [ReconcileInput(60, (external_reading(15),))]
    ):
        points.add(decision, 10_000)

    assert points.metrics == ("other",)
    assert len(points) == 1


def test_timelines_of_a_large_fleet_stay_within_the_memory_limit():
    limit = MAX_BYTES // 400  # 50 autoscalers instead of 20,000
    log = DecisionLog(limit)
    decisions = run_reconciles(
        make_spec(), [ReconcileInput(15 * index, (external_reading(15 + index % 7),)) for index in range(300)]
    )
    tracemalloc.start()
    for number in range(50):
        autoscaler = replace(make_autoscaler(), metadata=Metadata(f"web-{number}", "shop", uid=str(number)))
        for decision in decisions:
            log.on_decision(f"shop/web-{number}", autoscaler, decision)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert min(len(entry.timeline) for _, entry in log) >= 100
    assert used < 3 * limit


def test_recreated_autoscaler_starts_with_an_empty_timeline():
    log, (decision,) = DecisionLog(), run_reconciles(make_spec(), [ReconcileInput(0, (external_reading(15),))])
    for uid in ("first", "second"):
        log.on_decision("shop/web", replace(make_autoscaler(), metadata=Metadata("web", "shop", uid=uid)), decision)
    entry = log.get("shop/web")

    assert entry is not None
    assert len(entry.timeline) == 1
