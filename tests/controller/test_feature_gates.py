"""Stored autoscalers after a feature gate or a setting has changed."""

import asyncio

import pytest
from msgspec.structs import replace

from adapter.fakecluster.kinds import Kind
from autoscaler.settings import FeatureGates
from tests.controller.harness import WITHOUT_LEADER_ELECTION, queue

pytestmark = pytest.mark.looptime

SCALE_TO_ZERO_OFF = replace(WITHOUT_LEADER_ELECTION, gates=FeatureGates(HPAScaleToZero=False))
WITHOUT_SCHEMA = Kind(
    "steadyscale.dev", "v1beta1", "podautoscalers", "PodAutoscaler", has_status=True, has_generation=True
)
AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}


async def test_stored_minimum_of_zero_is_scaled_with_the_gate_off_and_enabled_again_by_a_manual_scale(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler(minReplicas=0, behavior=AT_ONCE)
    harness.start(SCALE_TO_ZERO_OFF)
    await asyncio.sleep(10)
    assert harness.replicas() == 8
    assert harness.condition("ScalingActive") == ("True", "ValidMetricFound")

    harness.external_metrics.set("queue", 0)
    await asyncio.sleep(60)
    assert harness.replicas() == 0
    assert harness.condition("ScalingActive") == ("False", "ScalingDisabled")
    assert harness.condition("ScaledToZero") is None

    harness.external_metrics.set("queue", 40)
    await asyncio.sleep(60)
    assert harness.replicas() == 0
    harness.resize(1)
    await asyncio.sleep(60)
    assert harness.replicas() == 8


async def test_failure_duration_longer_than_the_calendar_does_not_stop_the_autoscaler(harness):
    harness.external_metrics.set("queue", "connection refused")
    harness.external_metrics.set("backlog", 40)
    harness.deployment(replicas=4)
    harness.cluster.kinds.add(WITHOUT_SCHEMA)  # the object was stored before the schema had a maximum
    harness.autoscaler("web", queue(fallback={"replicas": 9, "failureDurationSeconds": 2**63 - 1}), queue("backlog"))
    harness.start()
    await asyncio.sleep(10)
    assert harness.replicas() == 8
    assert harness.condition("ExternalMetricFallbackActive") == ("False", "FallbackPending")
