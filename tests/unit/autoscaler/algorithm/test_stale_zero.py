"""Clearing the ScaledToZero condition of a target that has replicas."""

import pytest

from autoscaler.algorithm.stale_zero import clear_stale_zero
from autoscaler.types.observation import UnavailableTarget
from autoscaler.types.status import Condition, Status
from tests.builders import (
    NO_STABILIZATION,
    NOW,
    ago,
    condition_content,
    decide_once,
    external_reading,
    make_observation,
    make_spec,
    transition_time,
)

KIND = "ScaledToZero"


def decided(since, *, status="True", replicas=3, value=15, spec=None, in_flight=False, **observation):
    before = Status(conditions=(Condition("X", "True"), Condition(KIND, status, since, "ScaledToZero", "m")))
    observed = make_observation(external_reading(value), replicas=replicas, **observation)
    decision = decide_once(spec or make_spec(minimum=0), observed, status=before)
    return clear_stale_zero(decision, in_flight=in_flight)


@pytest.mark.parametrize("since", [ago(0), ago(100_000), None])
def test_condition_is_cleared_if_the_target_has_replicas(since):
    decision = decided(since)

    assert condition_content(decision, KIND) == (
        "False",
        "NotScaledToZero",
        "the HPA controller did not scale the workload to zero",
    )
    assert transition_time(decision, KIND) == NOW
    assert [condition.type for condition in decision.status.conditions][:2] == ["X", KIND]
    assert decision.status_changed


@pytest.mark.parametrize(
    "decision",
    [
        pytest.param(decided(ago(600), in_flight=True), id="a write of zero may be in flight"),
        pytest.param(decided(ago(600), replicas=0, value=0), id="no replicas"),
        pytest.param(
            decided(ago(600), value=0, spec=make_spec(minimum=0, behavior=NO_STABILIZATION)), id="scaled to zero again"
        ),
        pytest.param(decided(ago(600), target=UnavailableTarget("gone")), id="target unavailable"),
    ],
)
def test_condition_is_kept_otherwise(decision):
    assert (condition_content(decision, KIND) or ())[:1] == ("True",)


def test_other_states_of_the_condition_are_kept():
    assert condition_content(decided(ago(600), status="False"), KIND) == ("False", "ScaledToZero", "m")
    decision = decide_once(make_spec(), make_observation(external_reading(15)))
    assert clear_stale_zero(decision, in_flight=False) is decision
