"""The strip of the past: what it keeps, what it lets go, and that a fleet of them fits."""

import tracemalloc

from msgspec.structs import replace

from adapter.debug.decision_log import ROOM, Shelf
from adapter.debug.timeline import Timeline
from autoscaler.types.autoscaler import Metadata
from autoscaler.types.observation import TargetUnreadable
from tests.builders import (
    Step,
    make_autoscaler,
    make_external_metric,
    make_fallback,
    make_resource_metric,
    make_spec,
    pods_say,
    queue_of,
    run_passes,
    unreadable,
)

QUEUE = make_external_metric("queue", fallback=make_fallback(10, 30))


def strip(*readings, metric=QUEUE, room: int = 10_000, **more) -> Timeline:
    line = Timeline()
    steps = [Step(15 * index, (one,), **more) for index, one in enumerate(readings)]
    for decision in run_passes(make_spec(metric), steps):
        line.add(decision, room)
    return line


def test_a_point_has_the_metric_its_target_what_it_asks_for_and_the_replicas():
    columns = strip(queue_of(15), queue_of(30.5)).columns()

    assert columns["at"] == ["2026-03-01T12:00:00.000Z", "2026-03-01T12:00:15.000Z"]
    assert (columns["current"], columns["replicas"]) == ([3, 3], [3, 6])
    assert columns["metrics"] == [
        {"name": "queue", "value": [5, 10.167], "target": [5, 5], "proposal": [3, 7], "read": ["well", "well"]}
    ]


def test_an_outage_and_its_fallback_are_seen_as_such():
    metric = strip(queue_of(15), unreadable(), unreadable(), unreadable()).columns()["metrics"][0]

    assert metric["read"] == ["well", "failed", "failed", "fell_back"]
    assert metric["value"] == [5, None, None, None]
    assert metric["proposal"] == [3, None, None, 10]


def test_utilization_is_in_percent_of_what_is_requested():
    metric = strip(pods_say(500, 500, 500), metric=make_resource_metric(utilization=50)).columns()["metrics"][0]

    assert (metric["value"], metric["target"]) == ([50], [50])


def test_a_pass_that_asked_no_metric_leaves_a_gap():
    line, spec = Timeline(), make_spec(QUEUE)
    lost = TargetUnreadable("gone")
    for decision in run_passes(spec, [Step(0, (queue_of(15),)), Step(15, (queue_of(15),), target=lost)]):
        line.add(decision, 10_000)

    assert line.columns()["metrics"][0]["read"] == ["well", "not_asked"]


def test_a_quiet_day_costs_two_points():
    line = strip(*[queue_of(15)] * 100)

    assert len(line) == 2
    assert line.columns()["at"][-1] == "2026-03-01T12:24:45.000Z"


def test_the_oldest_points_go_first():
    line = strip(*[queue_of(15 + index) for index in range(50)], room=10 * 29)

    assert len(line) == 10
    assert line.columns()["at"][-1] == "2026-03-01T12:12:15.000Z"


def test_points_of_other_metrics_go_when_the_spec_is_edited():
    line = strip(queue_of(15))
    for decision in run_passes(make_spec(make_external_metric("other")), [Step(60, (queue_of(15),))]):
        line.add(decision, 10_000)

    assert line.metrics == ("other",)
    assert len(line) == 1


def test_twenty_thousand_restless_autoscalers_stay_within_their_room():
    shelf, room = Shelf(ROOM // 100), ROOM // 100  # a hundredth of the fleet in a hundredth of the room
    decisions = run_passes(make_spec(), [Step(15 * index, (queue_of(15 + index % 7),)) for index in range(300)])
    tracemalloc.start()
    for number in range(200):
        autoscaler = replace(make_autoscaler(), metadata=Metadata(f"web-{number}", "shop", uid=str(number)))
        for decision in decisions:
            shelf.decided(f"shop/web-{number}", autoscaler, decision)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    kept = [one.timeline for _, one in shelf]
    assert min(map(len, kept)) >= 100
    assert used < 3 * room


def test_what_is_made_anew_under_an_old_name_begins_anew():
    shelf, (decision,) = Shelf(), run_passes(make_spec(), [Step(0, (queue_of(15),))])
    for uid in ("first", "second"):
        shelf.decided("shop/web", replace(make_autoscaler(), metadata=Metadata("web", "shop", uid=uid)), decision)
    kept = shelf.get("shop/web")

    assert kept is not None
    assert len(kept.timeline) == 1
