"""The ScaledToZero condition of a target that has replicas: after a crash, and after another client scaled it up."""

import asyncio

import pytest

from tests.controller.harness import AUTOSCALERS

pytestmark = pytest.mark.looptime

MARKED = {
    "type": "ScaledToZero",
    "status": "True",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "reason": "ScaledToZero",
    "message": "the HPA controller scaled the workload to zero",
}
AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}


async def test_condition_that_was_written_before_a_crash_is_cleared_while_the_target_has_replicas(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler(minReplicas=0)
    harness.cluster.patch(f"{AUTOSCALERS}/web/status", {"status": {"conditions": [MARKED]}})
    harness.start()
    await asyncio.sleep(70)
    assert harness.condition("ScaledToZero") == ("True", "ScaledToZero")  # a write of zero may still be in flight
    await asyncio.sleep(25)
    assert harness.condition("ScaledToZero") == ("False", "NotScaledToZero")

    harness.resize(0)
    await asyncio.sleep(60)
    assert harness.replicas() == 0
    assert harness.condition("ScalingActive") == ("False", "ScalingDisabled")


async def test_manual_zero_stays_after_another_client_scaled_up_from_the_zero_of_the_autoscaler(harness):
    harness.external_metrics.set("queue", 0)
    harness.deployment(replicas=4)
    harness.autoscaler(minReplicas=0, behavior=AT_ONCE)
    harness.start()
    await asyncio.sleep(20)
    assert harness.replicas() == 0
    await asyncio.sleep(100)

    harness.external_metrics.values["queue"] = (20_000,)  # not announced: the other client is faster
    harness.resize(4)
    await asyncio.sleep(1)
    assert harness.condition("ScaledToZero") == ("False", "NotScaledToZero")
    harness.resize(0)
    await asyncio.sleep(60)
    assert harness.replicas() == 0


async def test_target_at_zero_keeps_the_condition(harness):
    harness.external_metrics.set("queue", 0)
    harness.deployment(replicas=4)
    harness.autoscaler(minReplicas=0, behavior=AT_ONCE)
    harness.start()
    await asyncio.sleep(200)
    assert harness.condition("ScaledToZero") == ("True", "ScaledToZero")
    harness.external_metrics.set("queue", 20)
    await asyncio.sleep(20)
    assert harness.replicas() == 4
