"""The sixteen acceptance scenarios of the fallback, on the fake cluster and on a real API server."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from adapter.fakecluster.api_errors import ApiError
from autoscaler.settings import FeatureGates
from tests.controller.harness import WITHOUT_LEADER_ELECTION, Harness, harness_on_control_plane, queue, running_harness

NO_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 0}}
ERROR = "connection refused"
ACTIVE = ("True", "FallbackActive")
PENDING = ("False", "FallbackPending")
INACTIVE = ("False", "NoFailureKnown")
CONDITION = "ExternalMetricFallbackActive"


@pytest.fixture(
    params=[pytest.param("memory", marks=pytest.mark.looptime), pytest.param("real", marks=pytest.mark.apiserver)]
)
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    is_real = request.param == "real"
    async with (
        harness_on_control_plane(request.getfixturevalue("isolated_plane")) if is_real else running_harness() as ready
    ):
        yield ready


def external_status(harness, index=0, name="web"):
    return harness.status(name)["currentMetrics"][index]["external"]


async def failing(harness, *metrics, replicas=4, **spec):
    """Start with available metrics; the metric queue fails from second 20 on."""
    harness.external_metrics.set("queue", replicas * 5)
    harness.deployment(replicas=replicas)
    harness.autoscaler("web", *(metrics or (queue(fallback={"replicas": 10}),)), **{"behavior": NO_WINDOW, **spec})
    process = harness.start()
    await asyncio.sleep(20)
    harness.external_metrics.set("queue", ERROR)
    await asyncio.sleep(0.5)
    return process


async def test_1_fallback_becomes_active_exactly_after_the_failure_duration(harness):
    await failing(harness)
    await asyncio.sleep(178)
    assert (harness.replicas(), harness.condition(CONDITION)) == (4, PENDING)
    assert external_status(harness)["fallbackStatus"] == "Normal"
    assert external_status(harness)["firstFailureTime"] == "2026-01-01T00:00:20Z"
    await asyncio.sleep(2)
    assert (harness.replicas(), harness.condition(CONDITION)) == (8, ACTIVE)
    await asyncio.sleep(16)
    assert harness.replicas() == 10
    assert external_status(harness)["fallbackReplicas"] == 10


@pytest.mark.parametrize(("others", "expected"), [(60, 12), (15, 8)], ids=["more", "less"])
async def test_2_higher_of_fallback_and_another_metric_is_used(harness, others, expected):
    harness.external_metrics.set("other", others)
    await failing(harness, queue(fallback={"replicas": 8}), queue("other"), replicas=5)
    await asyncio.sleep(240)
    assert harness.replicas() == expected


@pytest.mark.parametrize(
    ("fallback", "expected"),
    [
        pytest.param({"replicas": 10}, 10, id="Static"),
        pytest.param({"replicas": 10, "strategy": "UseMax"}, 50, id="UseMax"),
        pytest.param({"replicas": 80, "strategy": "UseMin"}, 50, id="UseMin"),
    ],
)
async def test_3_strategies_use_the_replicas_at_activation(harness, fallback, expected):
    await failing(harness, queue(fallback=fallback), replicas=50, maxReplicas=100)
    await asyncio.sleep(240)
    assert harness.replicas() == expected


async def test_4_change_of_leader_does_not_restart_the_failure_duration(harness):
    process = await failing(harness)
    await asyncio.sleep(170)
    await harness.stop(process)
    harness.start(identity="two")
    await asyncio.sleep(8)
    assert harness.condition(CONDITION) == PENDING
    await asyncio.sleep(3)
    assert harness.condition(CONDITION) == ACTIVE


async def test_5_manual_scaling_above_the_maximum_does_not_restart_the_failure_duration(harness):
    await failing(harness)
    await asyncio.sleep(100)
    harness.resize(30)
    await asyncio.sleep(1)
    assert harness.replicas() == 20
    assert external_status(harness)["firstFailureTime"] == "2026-01-01T00:00:20Z"
    await asyncio.sleep(85)
    assert harness.condition(CONDITION) == ACTIVE


async def test_6_fallback_is_tracked_per_selector(harness):
    harness.external_metrics.set("queue{q=a}", 20)
    fallback = {"replicas": 10}
    await failing(harness, queue(fallback=fallback, q="a"), queue(fallback=fallback, q="b"))
    await asyncio.sleep(200)
    assert [external_status(harness, index)["fallbackStatus"] for index in (0, 1)] == ["Normal", "Fallback"]


async def test_7_reordering_metrics_keeps_the_first_failure_time(harness):
    harness.external_metrics.set("other", 20)
    await failing(harness, queue(fallback={"replicas": 10}), queue("other"))
    await asyncio.sleep(100)
    harness.edit(metrics=[queue("other"), queue(fallback={"replicas": 10})])
    await asyncio.sleep(1)
    assert external_status(harness, 1)["firstFailureTime"] == "2026-01-01T00:00:20Z"


async def test_8_fallback_scales_up_from_own_zero_but_not_from_manual_zero(harness):
    harness.external_metrics.set("queue", 0)
    for name in ("own", "manual"):
        harness.deployment(name, replicas=0 if name == "manual" else 3)
        harness.autoscaler(name, queue(fallback={"replicas": 6}), minReplicas=0, behavior=NO_WINDOW)
    harness.start()
    await asyncio.sleep(20)
    assert harness.replicas("own") == 0
    harness.external_metrics.set("queue", ERROR)
    await asyncio.sleep(200)
    assert (harness.replicas("own"), harness.replicas("manual")) == (6, 0)
    assert harness.condition(CONDITION, "manual") == ("Unknown", "ScalingDisabled")


async def test_9_successful_read_restarts_the_failure_duration(harness):
    await failing(harness)
    await asyncio.sleep(60)
    harness.external_metrics.set("queue", 20)
    await asyncio.sleep(1)
    assert harness.condition(CONDITION) == INACTIVE
    assert "firstFailureTime" not in external_status(harness)
    harness.external_metrics.set("queue", ERROR)
    await asyncio.sleep(130)
    assert harness.condition(CONDITION) == PENDING


async def test_10_recovery_is_reported_once(harness):
    await failing(harness)
    await asyncio.sleep(200)
    harness.external_metrics.set("queue", 50)
    await asyncio.sleep(60)
    assert harness.condition(CONDITION) == INACTIVE
    assert harness.events().count("ExternalMetricFallbackActivated") == 1
    assert harness.events().count("ExternalMetricFallbackDeactivated") == 1
    assert harness.events().count("FailedGetExternalMetric") == 1


async def test_11_failing_metric_without_fallback_blocks_scaling_down_and_is_named(harness):
    harness.external_metrics.set("failing", ERROR)
    harness.external_metrics.set("low", 5)
    await failing(harness, queue(fallback={"replicas": 2}), queue("failing"), queue("low"), replicas=8)
    await asyncio.sleep(240)
    assert harness.replicas() == 8
    assert "failing" in harness.message("ScalingActive")


async def test_12_maximum_applies_to_the_fallback(harness):
    await failing(harness, queue(fallback={"replicas": 20}), replicas=8, maxReplicas=15)
    await asyncio.sleep(240)
    assert harness.replicas() == 15
    assert harness.condition("ScalingLimited") == ("True", "TooManyReplicas")


async def test_13_rollout_surge_does_not_change_the_captured_replicas(harness):
    await failing(harness, queue(fallback={"replicas": 4, "strategy": "UseMax"}), replicas=8)
    await asyncio.sleep(190)
    harness.surge(12)
    await asyncio.sleep(30)
    assert harness.replicas() == 8
    assert external_status(harness)["fallbackReplicas"] == 8


@pytest.mark.parametrize("error", ["refused", "timed out", "500", "no metrics returned", "not a number", "too old"])
async def test_14_every_read_error_starts_the_failure_duration(harness, error):
    await failing(harness)
    harness.external_metrics.set("queue", error)
    await asyncio.sleep(0.5)
    assert harness.condition(CONDITION) == PENDING


async def test_14_missing_pods_do_not_start_the_failure_duration(harness):
    harness.external_metrics.set("queue", 40)
    harness.cluster.workloads.pause()
    harness.deployment(replicas=4)
    metric = queue(fallback={"replicas": 10})
    metric["external"]["target"] = {"type": "Value", "value": "5"}
    harness.autoscaler("web", metric)
    harness.start()
    await asyncio.sleep(20)
    assert harness.condition("ScalingActive")[0] in ("True", "False")
    assert harness.condition(CONDITION) == INACTIVE


async def test_15_disabling_the_feature_gate_resets_the_failure_duration(harness):
    process = await failing(harness)
    await asyncio.sleep(100)
    await harness.stop(process)
    off = replace(WITHOUT_LEADER_ELECTION, gates=FeatureGates(HPAExternalMetricFallback=False))
    process = harness.start(off)
    await asyncio.sleep(100)
    assert harness.condition(CONDITION) == ("Unknown", "FeatureDisabled")
    await harness.stop(process)
    harness.start()
    await asyncio.sleep(170)
    assert harness.condition(CONDITION) == PENDING
    await asyncio.sleep(15)
    assert harness.condition(CONDITION) == ACTIVE


@pytest.mark.parametrize(
    ("fallback", "field"),
    [
        ({"replicas": 10, "failureDurationSeconds": 179}, "failureDurationSeconds"),
        ({"replicas": 0}, "replicas"),
        ({}, "replicas"),
        ({"replicas": 1, "strategy": "Best"}, "strategy"),
    ],
)
async def test_16_invalid_fallback_is_rejected_with_its_field(harness, fallback, field):
    with pytest.raises(ApiError, match=field):
        harness.autoscaler("web", queue(fallback=fallback))
