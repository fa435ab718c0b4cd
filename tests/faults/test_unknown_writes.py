"""Scale writes whose response is lost, between a process and a real API server."""

from typing import Any, Final

import pytest

from tests.faults.proxy import Fault
from tests.faults.rig import FaultRig, wait_for_log
from tests.integration.scaling import autoscaler, deployment

pytestmark = pytest.mark.faults

SCALE: Final = "/deployments/web/scale"
LATE: Final = {"answer_delay": 13.0}
"""Longer than the timeout of a request."""

DROPPED: Final = {"drop_answer": True}
FOUR_IN_HALF_AN_HOUR: Final = {
    "scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 1800}]},
    "scaleDown": {"stabilizationWindowSeconds": 0},
}
FAULTS: Final = [pytest.param(LATE, id="late"), pytest.param(DROPPED, id="dropped")]


def start(rig: FaultRig, **spec: Any) -> None:
    rig.apply(deployment("web", 8), autoscaler("web", **spec))
    rig.wait_for_condition("AbleToScale", "True", "ReadyForNewScale", within=120)


@pytest.mark.parametrize("fault", FAULTS)
def test_target_is_scaled_up_from_a_zero_whose_response_was_lost(faulty: FaultRig, fault: dict[str, Any]) -> None:
    start(faulty, minReplicas=0)
    with faulty.proxy.injected(Fault(SCALE, "PUT", **fault)):
        faulty.set(queue=0)
        faulty.wait_for_replicas(0, within=60)
        faulty.wait_for_condition("ScaledToZero", "True", "ScaledToZero", within=60)
        faulty.wait_for_condition("AbleToScale", "True", "ReadyForNewScale", within=90)
    faulty.set(queue=20)
    faulty.wait_for_replicas(4, within=90)


@pytest.mark.parametrize("fault", FAULTS)
def test_rate_policy_counts_a_step_whose_response_was_lost(faulty: FaultRig, fault: dict[str, Any]) -> None:
    start(faulty, behavior=FOUR_IN_HALF_AN_HOUR)
    with faulty.proxy.injected(Fault(SCALE, "PUT", **fault)):
        faulty.set(queue=100)
        faulty.wait_for_replicas(12, within=60)
        faulty.wait_for_condition("ScalingLimited", "True", "ScaleUpLimit", within=90)
        faulty.wait_for_condition("AbleToScale", "True", "ReadyForNewScale", within=90)
    assert faulty.replicas() == 12
    assert faulty.events().count("SuccessfulRescale") == 1


def test_zero_that_is_neither_answered_nor_readable_is_unknown_until_it_can_be_read(faulty: FaultRig) -> None:
    start(faulty, minReplicas=0)
    with faulty.proxy.injected(Fault(SCALE, status=504)):
        faulty.set(queue=0)
        faulty.wait_for_condition("AbleToScale", "Unknown", "RescaleOutcomeUnknown", within=60)
        assert faulty.condition("ScaledToZero") == ("True", "ScaledToZero")
        assert faulty.replicas() == 8
    faulty.wait_for_replicas(0, within=60)
    wait_for_log(faulty, "rescale outcome unknown")
    faulty.set(queue=20)
    faulty.wait_for_replicas(4, within=60)
