"""The sixteen acceptance scenarios of the fallback, through the controller: in memory, and on a real API server."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from adapter.fakecluster.api_errors import Refused
from autoscaler.settings import FeatureGates
from tests.controller.harness import ALONE, Stage, queue, staging, staging_for_real

AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}
DOWN = "connection refused"
ACTIVE = ("True", "FallbackActive")
RUNNING = ("False", "FailureClockRunning")
READABLE = ("False", "NoFailureKnown")
CONDITION = "ExternalMetricFallbackActive"


@pytest.fixture(
    params=[pytest.param("memory", marks=pytest.mark.looptime), pytest.param("real", marks=pytest.mark.apiserver)]
)
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    is_real = request.param == "real"
    async with staging_for_real(request.getfixturevalue("lonely_plane")) if is_real else staging() as ready:
        yield ready


def slot(stage, index=0, name="web"):
    return stage.status(name)["currentMetrics"][index]["external"]


async def failing(stage, *metrics, replicas=4, **spec):
    """Start with readable metrics, and let the queue fail from second 20 on."""
    stage.numbers.set("queue", replicas * 5)
    stage.deployment(replicas=replicas)
    stage.autoscaler("web", *(metrics or (queue(fallback={"replicas": 10}),)), **{"behavior": AT_ONCE, **spec})
    control = stage.start()
    await asyncio.sleep(20)
    stage.numbers.set("queue", DOWN)
    await asyncio.sleep(0.5)
    return control


async def test_1_the_fallback_speaks_after_its_time_and_not_a_second_before(stage):
    await failing(stage)
    await asyncio.sleep(178)
    assert (stage.replicas(), stage.condition(CONDITION)) == (4, RUNNING)
    assert slot(stage)["fallbackStatus"] == "Normal"
    assert slot(stage)["firstFailureTime"] == "2026-01-01T00:00:20Z"
    await asyncio.sleep(2)
    assert (stage.replicas(), stage.condition(CONDITION)) == (8, ACTIVE)
    await asyncio.sleep(16)
    assert stage.replicas() == 10
    assert slot(stage)["fallbackReplicas"] == 10


@pytest.mark.parametrize(("others", "expected"), [(60, 12), (15, 8)], ids=["more", "less"])
async def test_2_the_higher_of_fallback_and_another_metric_wins(stage, others, expected):
    stage.numbers.set("other", others)
    await failing(stage, queue(fallback={"replicas": 8}), queue("other"), replicas=5)
    await asyncio.sleep(240)
    assert stage.replicas() == expected


@pytest.mark.parametrize(
    ("fallback", "expected"),
    [
        pytest.param({"replicas": 10}, 10, id="Static goes to its number"),
        pytest.param({"replicas": 10, "strategy": "UseMax"}, 50, id="UseMax stays"),
        pytest.param({"replicas": 80, "strategy": "UseMin"}, 50, id="UseMin stays"),
    ],
)
async def test_3_strategies_start_from_the_size_at_activation(stage, fallback, expected):
    await failing(stage, queue(fallback=fallback), replicas=50, maxReplicas=100)
    await asyncio.sleep(240)
    assert stage.replicas() == expected


async def test_4_a_change_of_leader_does_not_restart_the_clock(stage):
    control = await failing(stage)
    await asyncio.sleep(170)
    await stage.stop(control)
    stage.start(identity="two")
    await asyncio.sleep(8)
    assert stage.condition(CONDITION) == RUNNING
    await asyncio.sleep(3)
    assert stage.condition(CONDITION) == ACTIVE


async def test_5_nor_does_somebody_who_scales_above_the_maximum(stage):
    await failing(stage)
    await asyncio.sleep(100)
    stage.resize(30)
    await asyncio.sleep(1)
    assert stage.replicas() == 20
    assert slot(stage)["firstFailureTime"] == "2026-01-01T00:00:20Z"
    await asyncio.sleep(85)
    assert stage.condition(CONDITION) == ACTIVE


async def test_6_of_one_name_with_two_selectors_only_the_failing_one_falls_back(stage):
    stage.numbers.set("queue{q=a}", 20)
    fallback = {"replicas": 10}
    await failing(stage, queue(fallback=fallback, q="a"), queue(fallback=fallback, q="b"))
    await asyncio.sleep(200)
    assert [slot(stage, index)["fallbackStatus"] for index in (0, 1)] == ["Normal", "Fallback"]


async def test_7_reordering_the_metrics_keeps_the_clock(stage):
    stage.numbers.set("other", 20)
    await failing(stage, queue(fallback={"replicas": 10}), queue("other"))
    await asyncio.sleep(100)
    stage.edit(metrics=[queue("other"), queue(fallback={"replicas": 10})])
    await asyncio.sleep(1)
    assert slot(stage, 1)["firstFailureTime"] == "2026-01-01T00:00:20Z"


async def test_8_a_zero_of_ours_wakes_and_a_zero_by_hand_stays(stage):
    stage.numbers.set("queue", 0)
    for name in ("ours", "hand"):
        stage.deployment(name, replicas=0 if name == "hand" else 3)
        stage.autoscaler(name, queue(fallback={"replicas": 6}), minReplicas=0, behavior=AT_ONCE)
    stage.start()
    await asyncio.sleep(20)
    assert stage.replicas("ours") == 0
    stage.numbers.set("queue", DOWN)
    await asyncio.sleep(200)
    assert (stage.replicas("ours"), stage.replicas("hand")) == (6, 0)
    assert stage.condition(CONDITION, "hand") == ("Unknown", "ScalingDisabled")


async def test_9_a_good_read_in_between_starts_the_clock_anew(stage):
    await failing(stage)
    await asyncio.sleep(60)
    stage.numbers.set("queue", 20)
    await asyncio.sleep(1)
    assert stage.condition(CONDITION) == READABLE
    assert "firstFailureTime" not in slot(stage)
    stage.numbers.set("queue", DOWN)
    await asyncio.sleep(130)
    assert stage.condition(CONDITION) == RUNNING


async def test_10_recovery_is_told_once(stage):
    await failing(stage)
    await asyncio.sleep(200)
    stage.numbers.set("queue", 50)
    await asyncio.sleep(60)
    assert stage.condition(CONDITION) == READABLE
    assert stage.events().count("ExternalMetricFallbackActivated") == 1
    assert stage.events().count("ExternalMetricFallbackDeactivated") == 1
    assert stage.events().count("FailedGetExternalMetric") == 1


async def test_11_another_metric_without_fallback_still_blocks_going_down_and_is_named(stage):
    stage.numbers.set("bare", DOWN)
    stage.numbers.set("calm", 5)
    await failing(stage, queue(fallback={"replicas": 2}), queue("bare"), queue("calm"), replicas=8)
    await asyncio.sleep(240)
    assert stage.replicas() == 8
    assert "bare" in stage.message("ScalingActive")


async def test_12_the_maximum_holds_for_a_fallback_as_well(stage):
    await failing(stage, queue(fallback={"replicas": 20}), replicas=8, maxReplicas=15)
    await asyncio.sleep(240)
    assert stage.replicas() == 15
    assert stage.condition("ScalingLimited") == ("True", "TooManyReplicas")


async def test_13_a_surge_of_a_rollout_does_not_change_what_was_captured(stage):
    await failing(stage, queue(fallback={"replicas": 4, "strategy": "UseMax"}), replicas=8)
    await asyncio.sleep(190)
    stage.surge(12)
    await asyncio.sleep(30)
    assert stage.replicas() == 8
    assert slot(stage)["fallbackReplicas"] == 8


@pytest.mark.parametrize("why", ["refused", "timed out", "500", "no metrics returned", "not a number", "too old"])
async def test_14_every_way_of_not_being_readable_starts_the_clock(stage, why):
    await failing(stage)
    stage.numbers.set("queue", why)
    await asyncio.sleep(0.5)
    assert stage.condition(CONDITION) == RUNNING


async def test_14_no_pods_do_not(stage):
    stage.numbers.set("queue", 40)
    stage.cluster.workloads.switch_off()
    stage.deployment(replicas=4)
    metric = queue(fallback={"replicas": 10})
    metric["external"]["target"] = {"type": "Value", "value": "5"}
    stage.autoscaler("web", metric)
    stage.start()
    await asyncio.sleep(20)
    assert stage.condition("ScalingActive")[0] in ("True", "False")
    assert stage.condition(CONDITION) == READABLE


async def test_15_the_gate_off_and_on_again_starts_afresh(stage):
    control = await failing(stage)
    await asyncio.sleep(100)
    await stage.stop(control)
    off = replace(ALONE, gates=FeatureGates(HPAExternalMetricFallback=False))
    control = stage.start(off)
    await asyncio.sleep(100)
    assert stage.condition(CONDITION) == ("Unknown", "FeatureDisabled")
    await stage.stop(control)
    stage.start()
    await asyncio.sleep(170)
    assert stage.condition(CONDITION) == RUNNING
    await asyncio.sleep(15)
    assert stage.condition(CONDITION) == ACTIVE


@pytest.mark.parametrize(
    ("fallback", "field"),
    [
        ({"replicas": 10, "failureDurationSeconds": 179}, "failureDurationSeconds"),
        ({"replicas": 0}, "replicas"),
        ({}, "replicas"),
        ({"replicas": 1, "strategy": "Best"}, "strategy"),
    ],
)
async def test_16_a_fallback_that_makes_no_sense_is_refused_with_its_field(stage, fallback, field):
    with pytest.raises(Refused, match=field):
        stage.autoscaler("web", queue(fallback=fallback))
