"""Kubernetes' words for moments and durations, and how a condition changes."""

from datetime import UTC, datetime, timedelta

import pytest

from autoscaler.algorithm.conditions import spell, stamp
from autoscaler.types.status import Condition, Status
from tests.builders import (
    Step,
    decide_once,
    external_slot,
    later,
    make_condition,
    make_observation,
    make_spec,
    passes_at,
    queue_of,
    run_passes,
    unreadable,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(0, "0s", id="nothing"),
        pytest.param(45.9, "45s", id="seconds are whole"),
        pytest.param(180, "3m0s", id="minutes"),
        pytest.param(3605, "1h0m5s", id="hours"),
        pytest.param(90000, "25h0m0s", id="days are hours"),
        pytest.param(-5, "0s", id="never below nothing"),
    ],
)
def test_a_duration_is_written_as_go_writes_it(seconds, text):
    assert spell(timedelta(seconds=seconds)) == text


def test_a_moment_is_written_as_kubernetes_writes_it():
    assert stamp(datetime(2026, 3, 1, 9, 5, 7, 999999, tzinfo=UTC)) == "2026-03-01T09:05:07Z"


def test_a_condition_moves_its_time_only_with_its_status():
    good, still, bad = run_passes(
        make_spec(), [*passes_at((0, 15), queue_of(15)), Step(30, (unreadable(),))], status=Status()
    )

    times = [one.status.condition("ScalingActive").last_transition_time for one in (good, still, bad)]
    assert times == [later(0), later(0), later(30)]


def test_reason_and_message_change_without_the_time():
    before = Status(conditions=(make_condition("AbleToScale", reason="Old", message="old", since=600),))

    decision = decide_once(status=before)

    assert decision.status.condition("AbleToScale") == Condition(
        "AbleToScale", "True", later(-600), "ReadyForNewScale", "recommended size matches current size"
    )


def test_conditions_stand_in_the_order_of_their_first_appearance():
    before = Status(conditions=(make_condition("SomeoneElses"), make_condition("ScalingActive")))

    decision = decide_once(status=before)

    kinds = [condition.type for condition in decision.status.conditions]
    assert kinds == ["SomeoneElses", "ScalingActive", "AbleToScale", "ScalingLimited"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param(Status(), Status(current_metrics=()), True, id="no list is like an empty one"),
        pytest.param(
            Status(current_metrics=(external_slot(average="1"),)),
            Status(current_metrics=(external_slot(average="1000m"),)),
            True,
            id="quantities count by value",
        ),
        pytest.param(Status(), Status(desired_replicas=1), False, id="another size is desired"),
        pytest.param(Status(), Status(current_replicas=1), False, id="it has another size"),
        pytest.param(Status(), Status(observed_generation=1), False, id="another generation"),
        pytest.param(Status(), Status(last_scale_time=later(0)), False, id="another time of scaling"),
        pytest.param(Status(), Status(conditions=(make_condition("A"),)), False, id="another condition"),
        pytest.param(Status(), Status(current_metrics=(external_slot(),)), False, id="another metric"),
    ],
)
def test_a_status_is_written_only_if_it_says_something_new(one, other, same):
    assert one.says_the_same_as(other) is same


def test_a_condition_is_found_by_its_type():
    condition = make_condition("A")

    assert Status(conditions=(make_condition("B"), condition)).condition("A") is condition
    assert Status().condition("A") is None


def test_times_on_the_wire_are_whole_seconds():
    decision = decide_once(seen=make_observation(queue_of(25)), now=later(0.75))

    assert decision.status.last_scale_time == later(0)
    assert {condition.last_transition_time for condition in decision.status.conditions} == {later(0)}
