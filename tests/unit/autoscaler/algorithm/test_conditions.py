"""Conditions: transition times, order and lookup; and the equivalence of statuses."""

from datetime import timedelta

import pytest

from autoscaler.algorithm.formatting import go_duration
from autoscaler.types.status import Condition, Status, condition_of
from tests.builders import (
    ReconcileInput,
    decide_once,
    external_reading,
    external_status,
    inputs_at,
    later,
    make_condition,
    make_observation,
    make_spec,
    run_reconciles,
    transition_time,
    unavailable_reading,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(0, "0s", id="zero"),
        pytest.param(45.9, "45s", id="fractions are truncated"),
        pytest.param(180, "3m0s", id="minutes"),
        pytest.param(3605, "1h0m5s", id="hours"),
        pytest.param(90000, "25h0m0s", id="more than a day"),
        pytest.param(-5, "0s", id="negative"),
    ],
)
def test_duration_is_formatted_like_go(seconds, text):
    assert go_duration(timedelta(seconds=seconds)) == text


def test_transition_time_of_a_condition_changes_only_with_its_status():
    good, still, bad = run_reconciles(
        make_spec(),
        [*inputs_at((0, 15), external_reading(15)), ReconcileInput(30, (unavailable_reading(),))],
        status=Status(),
    )

    times = [transition_time(one, "ScalingActive") for one in (good, still, bad)]
    assert times == [later(0), later(0), later(30)]


def test_new_reason_and_message_keep_the_transition_time():
    before = Status(conditions=(make_condition("AbleToScale", reason="Old", message="old", since=600),))

    decision = decide_once(status=before)

    assert decision.status.condition("AbleToScale") == Condition(
        "AbleToScale", "True", later(-600), "ReadyForNewScale", "recommended size matches current size"
    )


def test_conditions_keep_the_order_in_which_they_were_first_set():
    before = Status(conditions=(make_condition("Unknown"), make_condition("ScalingActive")))

    decision = decide_once(status=before)

    kinds = [condition.type for condition in decision.status.conditions]
    assert kinds == ["Unknown", "ScalingActive", "AbleToScale", "ScalingLimited"]


@pytest.mark.parametrize(
    ("first", "second", "equivalent"),
    [
        pytest.param(Status(), Status(current_metrics=()), True, id="None and empty list of metrics"),
        pytest.param(
            Status(current_metrics=(external_status(average="1"),)),
            Status(current_metrics=(external_status(average="1000m"),)),
            True,
            id="equal quantities in different notation",
        ),
        pytest.param(Status(), Status(desired_replicas=1), False, id="desired replicas differ"),
        pytest.param(Status(), Status(current_replicas=1), False, id="current replicas differ"),
        pytest.param(Status(), Status(observed_generation=1), False, id="observed generation differs"),
        pytest.param(Status(), Status(last_scale_time=later(0)), False, id="last scale time differs"),
        pytest.param(Status(), Status(conditions=(make_condition("A"),)), False, id="conditions differ"),
        pytest.param(Status(), Status(current_metrics=(external_status(),)), False, id="metrics differ"),
    ],
)
def test_equivalent_statuses(first, second, equivalent):
    assert first.is_equivalent_to(second) is equivalent


def test_condition_is_found_by_its_type():
    condition = make_condition("A")

    assert Status(conditions=(make_condition("B"), condition)).condition("A") is condition
    assert Status().condition("A") is None


@pytest.mark.parametrize("status", [{}, {"conditions": None}, {"conditions": [{"type": "B"}, {}]}])
def test_condition_missing_in_a_json_status_is_none(status):
    assert condition_of(status, "A") is None


def test_condition_of_a_json_status_is_found_by_its_type():
    condition = {"type": "A", "status": "True"}

    assert condition_of({"conditions": [{"type": "B"}, condition]}, "A") == condition


def test_times_in_the_status_are_whole_seconds():
    decision = decide_once(observation=make_observation(external_reading(25)), now=later(0.75))

    assert decision.status.last_scale_time == later(0)
    assert {condition.last_transition_time for condition in decision.status.conditions} == {later(0)}
