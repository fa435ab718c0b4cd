"""Conflicts, refusals, versions that expire, an API server that is gone: nothing is lost, nothing is done twice."""

import asyncio

import pytest

from tests.controller.harness import AUTOSCALERS, DEPLOYMENTS, queue

pytestmark = pytest.mark.looptime

TO_ZERO = {"minReplicas": 0, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}


async def started(stage, replicas=8, **spec):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=replicas)
    stage.autoscaler(**spec)
    control = stage.start()
    await asyncio.sleep(20)
    stage.cluster.asked.clear()
    return control


async def test_a_conflict_on_the_scale_is_met_by_reading_again_and_writing_the_same(stage):
    await started(stage)
    stage.cluster.refuse_next(409, times=2, verb="update", within="/scale")
    stage.numbers.set("queue", 60)
    await asyncio.sleep(1)
    assert stage.replicas() == 12
    assert len(stage.asked("update", "/scale")) == 3
    assert stage.events() == ["SuccessfulRescale"]


async def test_five_conflicts_are_an_answer(stage):
    await started(stage)
    stage.cluster.refuse_next(409, times=5, verb="update", within="/scale")
    stage.numbers.set("queue", 60)
    await asyncio.sleep(1)
    assert stage.replicas() == 8
    assert stage.condition("AbleToScale") == ("False", "FailedUpdateScale")
    assert stage.events() == ["FailedRescale"]
    await asyncio.sleep(20)
    assert stage.replicas() == 12


async def test_a_refusal_of_the_scale_is_told_and_tried_again_next_period(stage):
    await started(stage)
    stage.cluster.refuse_next(403, verb="update", within="/scale")
    stage.numbers.set("queue", 60)
    await asyncio.sleep(1)
    assert stage.condition("AbleToScale") == ("False", "FailedUpdateScale")
    assert len(stage.asked("update", "/scale")) == 1
    await asyncio.sleep(16)
    assert stage.replicas() == 12


@pytest.mark.parametrize("code", [409, 429, 500, 503])
async def test_a_status_that_was_refused_is_said_in_the_next_pass(stage, code):
    await started(stage)
    stage.cluster.refuse_next(code, verb="patch", within="/status")
    stage.numbers.set("queue", 41)
    await asyncio.sleep(0.5)
    assert stage.status()["currentMetrics"][0]["external"]["current"]["averageValue"] == "5"
    await asyncio.sleep(16)
    assert stage.status()["currentMetrics"][0]["external"]["current"]["averageValue"] == "5125m"


async def test_a_zero_is_announced_before_it_is_one(stage):
    await started(stage, **TO_ZERO)
    stage.numbers.set("queue", 0)
    await asyncio.sleep(0.5)
    assert stage.replicas() == 0
    writes = [one for one in stage.asked() if one.startswith(("patch", "update"))]
    assert [one.rpartition("/")[2] for one in writes] == ["status", "scale", "status"]
    assert stage.condition("ScaledToZero") == ("True", "ScaledToZero")


@pytest.mark.parametrize("code", [409, 429, 503])
async def test_a_zero_that_cannot_be_announced_is_not_gone_to(stage, code):
    await started(stage, **TO_ZERO)
    stage.cluster.refuse_next(code, times=6, verb="patch", within="/status")
    stage.numbers.set("queue", 0)
    await asyncio.sleep(0.5)
    assert stage.replicas() == 8
    assert "FailedRescale" in stage.events()
    await asyncio.sleep(60)
    assert stage.replicas() == 0
    assert stage.condition("ScaledToZero") == ("True", "ScaledToZero")
    stage.numbers.set("queue", 20)
    await asyncio.sleep(16)
    assert stage.replicas() == 4


async def test_a_zero_that_was_announced_and_not_gone_to_is_taken_back(stage):
    await started(stage, **TO_ZERO)
    stage.cluster.refuse_next(403, verb="update", within="/scale")
    stage.numbers.set("queue", 0)
    await asyncio.sleep(0.5)
    assert stage.replicas() == 8
    assert stage.condition("ScaledToZero") != ("True", "ScaledToZero")
    assert stage.condition("AbleToScale") == ("False", "FailedUpdateScale")


async def test_a_zero_of_ours_is_never_lost_though_nothing_more_can_be_said_and_the_process_ends(stage):
    control = await started(stage, **TO_ZERO)
    stage.cluster.refuse_next(503, times=40, verb="patch", within="/status", after=1)
    stage.numbers.set("queue", 0)
    await asyncio.sleep(0.5)
    assert stage.replicas() == 0
    await stage.stop(control)
    stage.cluster.weather.relent()
    stage.start()
    await asyncio.sleep(30)
    stage.numbers.set("queue", 20)
    await asyncio.sleep(16)
    assert stage.replicas() == 4


async def test_a_waking_that_could_not_be_said_is_one_all_the_same(stage):
    await started(stage, **TO_ZERO)
    stage.cluster.refuse_next(503, times=40, verb="patch", within="/status", after=1)
    stage.numbers.set("queue", 0)
    await asyncio.sleep(20)
    stage.numbers.set("queue", 20)
    await asyncio.sleep(0.5)
    assert stage.replicas() == 4
    stage.resize(0)  # by somebody else, which is not ours to wake from
    await asyncio.sleep(40)
    assert stage.replicas() == 0


async def fallen_back(stage):
    await started(stage, metrics=[queue(fallback={"replicas": 10})])
    stage.numbers.set("queue", "connection refused")
    await asyncio.sleep(200)
    assert stage.condition("ExternalMetricFallbackActive") == ("True", "FallbackActive")


async def test_the_end_of_a_fallback_is_told_once_though_it_could_not_be_written(stage):
    await fallen_back(stage)
    stage.cluster.refuse_next(409, verb="patch", within="/status")
    stage.numbers.set("queue", 50)
    await asyncio.sleep(40)
    assert stage.condition("ExternalMetricFallbackActive") == ("False", "NoFailureKnown")
    assert stage.events().count("ExternalMetricFallbackDeactivated") == 1


async def test_a_clock_that_ended_does_not_run_on_because_its_end_could_not_be_written(stage):
    await fallen_back(stage)
    stage.cluster.refuse_next(503, verb="patch", within="/status")
    stage.numbers.set("queue", 50)
    await asyncio.sleep(1)
    stage.numbers.set("queue", "connection refused")
    await asyncio.sleep(40)
    assert stage.condition("ExternalMetricFallbackActive") == ("False", "FailureClockRunning")


async def test_a_zero_of_somebody_else_is_left_alone(stage):
    await started(stage, **TO_ZERO)
    stage.resize(0)
    await asyncio.sleep(40)
    assert stage.replicas() == 0
    assert stage.condition("ScalingActive") == ("False", "ScalingDisabled")


async def test_when_versions_expire_it_lists_again_and_misses_nothing(stage):
    await started(stage)
    stage.cluster.expire_watches()
    stage.edit(maxReplicas=4)
    await asyncio.sleep(5)
    assert stage.replicas() == 4
    stage.deployment("late", replicas=3)
    stage.autoscaler("late")
    await asyncio.sleep(5)
    assert stage.replicas("late") == 6


async def test_an_api_server_that_is_gone_and_back_finds_everything_as_it_was(stage):
    await started(stage)
    await stage.cluster.go_down()
    stage.numbers.set("queue", 60)
    await asyncio.sleep(60)
    await stage.cluster.come_up()
    await asyncio.sleep(60)
    assert stage.replicas() == 12
    assert stage.condition("AbleToScale") == ("True", "ReadyForNewScale")
    assert stage.events().count("SuccessfulRescale") == 1


async def test_a_target_that_is_deleted_in_the_middle_is_an_answer_not_a_crash(stage):
    await started(stage)
    stage.cluster.delete(f"{DEPLOYMENTS}/web")
    await asyncio.sleep(0.5)
    assert stage.condition("AbleToScale") == ("False", "FailedGetScale")
    stage.deployment(replicas=4)
    await asyncio.sleep(0.5)
    assert stage.replicas() == 8


async def test_an_autoscaler_deleted_while_its_status_is_written_is_just_gone(stage, caplog):
    control = await started(stage)
    stage.numbers.slow["queue"] = 0.5
    stage.numbers.set("queue", 41)
    await asyncio.sleep(0.2)
    stage.cluster.delete(f"{AUTOSCALERS}/web")
    await asyncio.sleep(30)
    assert control.decisions() == {}
    assert "Traceback" not in caplog.text


async def test_somebody_who_edits_at_the_same_moment_loses_nothing(stage):
    await started(stage)
    stage.numbers.slow["queue"] = 0.5
    stage.numbers.set("queue", 60)
    await asyncio.sleep(0.2)
    stage.edit(maxReplicas=10)
    await asyncio.sleep(20)
    assert stage.cluster.get(f"{AUTOSCALERS}/web")["spec"]["maxReplicas"] == 10
    assert stage.replicas() == 10


async def test_pods_that_may_not_be_listed_stop_only_those_who_need_them(stage):
    stage.cluster.weather.forbid("list", "pods")
    stage.numbers.set("queue", 40)
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    stage.deployment(replicas=4)
    stage.deployment("needy", replicas=4)
    stage.autoscaler()
    stage.autoscaler("needy", cpu)
    stage.start()
    await asyncio.sleep(20)
    assert stage.replicas() == 8
    assert stage.condition("AbleToScale", "needy") == ("False", "FailedGetScale")
    assert "pods is forbidden" in stage.message("AbleToScale", "needy")


async def test_deployments_that_may_not_be_watched_are_fetched(stage):
    stage.cluster.weather.forbid("list", "deployments")
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=4)
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(20)
    assert stage.replicas() == 8
    assert stage.asked("get", "/scale")


async def test_metrics_of_the_cluster_are_read_as_the_hpa_reads_them(stage):
    for index in range(4):
        stage.cluster.metrics.usage[f"shop/web-{index:05}"] = {"cpu": "90m"}
    containers = [{"name": "it", "resources": {"requests": {"cpu": "100m"}}}]
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": 4, "selector": {"matchLabels": labels}, "template": template}
    stage.cluster.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 45}}}
    stage.autoscaler("web", cpu)
    stage.start()
    await asyncio.sleep(80)
    assert stage.replicas() == 8
    assert stage.status()["currentMetrics"][0]["resource"]["current"]["averageUtilization"] == 90


async def test_external_metrics_of_another_server_are_read_where_that_is_asked_for(stage):
    from msgspec.structs import replace  # noqa: PLC0415

    from tests.controller.harness import ALONE  # noqa: PLC0415

    stage.cluster.metrics.external["shop", "queue"] = ["40"]
    stage.deployment(replicas=4)
    stage.autoscaler("web", queue())
    stage.start(replace(ALONE, external_metrics="cluster"))
    await asyncio.sleep(20)
    assert stage.replicas() == 8
