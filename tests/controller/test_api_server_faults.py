"""Conflicts, errors, expired versions and outages of the API server: no write is lost or repeated."""

import asyncio

import pytest
from msgspec.structs import replace

from tests.controller.harness import AUTOSCALERS, DEPLOYMENTS, WITHOUT_LEADER_ELECTION, queue

pytestmark = pytest.mark.looptime

TO_ZERO = {"minReplicas": 0, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}


async def start(harness, replicas=8, **spec):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=replicas)
    harness.autoscaler(**spec)
    process = harness.start()
    await asyncio.sleep(20)
    harness.cluster.requests.clear()
    return process


async def test_scale_write_is_retried_after_a_conflict(harness):
    await start(harness)
    harness.cluster.faults.fail_next(409, times=2, verb="update", within="/scale")
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(1)
    assert harness.replicas() == 12
    assert len(harness.sent_requests("update", "/scale")) == 3
    assert harness.events() == ["SuccessfulRescale"]


async def test_scale_write_fails_after_five_conflicts(harness):
    await start(harness)
    harness.cluster.faults.fail_next(409, times=5, verb="update", within="/scale")
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(1)
    assert harness.replicas() == 8
    assert harness.condition("AbleToScale") == ("False", "FailedUpdateScale")
    assert harness.events() == ["FailedRescale"]
    await asyncio.sleep(20)
    assert harness.replicas() == 12


async def test_rejected_scale_write_is_reported_and_retried_in_the_next_period(harness):
    await start(harness)
    harness.cluster.faults.fail_next(403, verb="update", within="/scale")
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(1)
    assert harness.condition("AbleToScale") == ("False", "FailedUpdateScale")
    assert len(harness.sent_requests("update", "/scale")) == 1
    await asyncio.sleep(16)
    assert harness.replicas() == 12


@pytest.mark.parametrize("code", [409, 429, 500, 503])
async def test_failed_status_write_is_repeated_in_the_next_reconcile(harness, code):
    await start(harness)
    harness.cluster.faults.fail_next(code, verb="update", within="/status")
    harness.external_metrics.set("queue", 41)
    await asyncio.sleep(0.5)
    assert harness.status()["currentMetrics"][0]["external"]["current"]["averageValue"] == "5"
    await asyncio.sleep(16)
    assert harness.status()["currentMetrics"][0]["external"]["current"]["averageValue"] == "5125m"


async def test_scaled_to_zero_condition_is_written_before_the_scale(harness):
    await start(harness, **TO_ZERO)
    harness.external_metrics.set("queue", 0)
    await asyncio.sleep(0.5)
    assert harness.replicas() == 0
    writes = [request for request in harness.sent_requests() if request.startswith(("patch", "update"))]
    assert [request.rpartition("/")[2] for request in writes] == ["status", "scale", "status"]
    assert harness.condition("ScaledToZero") == ("True", "ScaledToZero")


@pytest.mark.parametrize("code", [409, 429, 503])
async def test_target_is_not_scaled_to_zero_if_the_condition_cannot_be_written(harness, code):
    await start(harness, **TO_ZERO)
    harness.cluster.faults.fail_next(code, times=6, verb="update", within="/status")
    harness.external_metrics.set("queue", 0)
    await asyncio.sleep(0.5)
    assert harness.replicas() == 8
    assert "FailedRescale" in harness.events()
    await asyncio.sleep(60)
    assert harness.replicas() == 0
    assert harness.condition("ScaledToZero") == ("True", "ScaledToZero")
    harness.external_metrics.set("queue", 20)
    await asyncio.sleep(16)
    assert harness.replicas() == 4


async def test_scaled_to_zero_condition_is_reverted_if_the_scale_write_fails(harness):
    await start(harness, **TO_ZERO)
    harness.cluster.faults.fail_next(403, verb="update", within="/scale")
    harness.external_metrics.set("queue", 0)
    await asyncio.sleep(0.5)
    assert harness.replicas() == 8
    assert harness.condition("ScaledToZero") != ("True", "ScaledToZero")
    assert harness.condition("AbleToScale") == ("False", "FailedUpdateScale")


async def test_own_scale_to_zero_is_known_after_failed_status_writes_and_a_restart(harness):
    process = await start(harness, **TO_ZERO)
    harness.cluster.faults.fail_next(503, times=40, verb="update", within="/status", after=1)
    harness.external_metrics.set("queue", 0)
    await asyncio.sleep(0.5)
    assert harness.replicas() == 0
    await harness.stop(process)
    harness.cluster.faults.clear()
    harness.start()
    await asyncio.sleep(30)
    harness.external_metrics.set("queue", 20)
    await asyncio.sleep(16)
    assert harness.replicas() == 4


async def test_scale_up_from_zero_is_known_despite_failed_status_writes(harness):
    await start(harness, **TO_ZERO)
    harness.cluster.faults.fail_next(503, times=40, verb="update", within="/status", after=1)
    harness.external_metrics.set("queue", 0)
    await asyncio.sleep(20)
    harness.external_metrics.set("queue", 20)
    await asyncio.sleep(0.5)
    assert harness.replicas() == 4
    harness.resize(0)  # by another client: must stay at zero
    await asyncio.sleep(40)
    assert harness.replicas() == 0


async def start_with_active_fallback(harness):
    await start(harness, metrics=[queue(fallback={"replicas": 10})])
    harness.external_metrics.set("queue", "connection refused")
    await asyncio.sleep(200)
    assert harness.condition("ExternalMetricFallbackActive") == ("True", "FallbackActive")


async def test_end_of_a_fallback_is_reported_once_despite_a_failed_status_write(harness):
    await start_with_active_fallback(harness)
    harness.cluster.faults.fail_next(409, verb="update", within="/status")
    harness.external_metrics.set("queue", 50)
    await asyncio.sleep(40)
    assert harness.condition("ExternalMetricFallbackActive") == ("False", "NoFailureKnown")
    assert harness.events().count("ExternalMetricFallbackDeactivated") == 1


async def test_recovery_resets_the_failure_duration_despite_a_failed_status_write(harness):
    await start_with_active_fallback(harness)
    harness.cluster.faults.fail_next(503, verb="update", within="/status")
    harness.external_metrics.set("queue", 50)
    await asyncio.sleep(1)
    harness.external_metrics.set("queue", "connection refused")
    await asyncio.sleep(40)
    assert harness.condition("ExternalMetricFallbackActive") == ("False", "FallbackPending")


async def test_target_scaled_to_zero_by_another_client_is_not_scaled(harness):
    await start(harness, **TO_ZERO)
    harness.resize(0)
    await asyncio.sleep(40)
    assert harness.replicas() == 0
    assert harness.condition("ScalingActive") == ("False", "ScalingDisabled")


async def test_expired_watches_miss_no_changes(harness):
    await start(harness)
    harness.cluster.expire_watches()
    harness.edit(maxReplicas=4)
    await asyncio.sleep(5)
    assert harness.replicas() == 4
    harness.deployment("late", replicas=3)
    harness.autoscaler("late")
    await asyncio.sleep(5)
    assert harness.replicas("late") == 6


async def test_outage_of_the_api_server_causes_one_rescale_afterwards(harness):
    await start(harness)
    await harness.cluster.stop()
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(60)
    await harness.cluster.start()
    await asyncio.sleep(120)  # the longest delay of a list, 45 s, and several periods
    assert harness.replicas() == 12
    assert harness.condition("AbleToScale") == ("True", "ReadyForNewScale")
    assert harness.events().count("SuccessfulRescale") == 1


async def test_deleted_target_is_reported(harness):
    await start(harness)
    harness.cluster.delete(f"{DEPLOYMENTS}/web")
    await asyncio.sleep(0.5)
    assert harness.condition("AbleToScale") == ("False", "FailedGetScale")
    harness.deployment(replicas=4)
    await asyncio.sleep(0.5)
    assert harness.replicas() == 8


async def test_autoscaler_deleted_during_a_reconcile_is_removed(harness, caplog):
    process = await start(harness)
    harness.external_metrics.delays["queue"] = 0.5
    harness.external_metrics.set("queue", 41)
    await asyncio.sleep(0.2)
    harness.cluster.delete(f"{AUTOSCALERS}/web")
    await asyncio.sleep(30)
    assert process.decisions() == {}
    assert "Traceback" not in caplog.text


async def test_concurrent_edit_is_not_overwritten(harness):
    await start(harness)
    harness.external_metrics.delays["queue"] = 0.5
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(0.2)
    harness.edit(maxReplicas=10)
    await asyncio.sleep(20)
    assert harness.cluster.get(f"{AUTOSCALERS}/web")["spec"]["maxReplicas"] == 10
    assert harness.replicas() == 10


async def test_missing_permission_to_list_pods_affects_only_metrics_of_pods(harness):
    harness.cluster.faults.forbid("list", "pods")
    harness.external_metrics.set("queue", 40)
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    harness.deployment(replicas=4)
    harness.deployment("cpu", replicas=4)
    harness.autoscaler()
    harness.autoscaler("cpu", cpu)
    harness.start()
    await asyncio.sleep(20)
    assert harness.replicas() == 8
    assert harness.condition("AbleToScale", "cpu") == ("False", "FailedGetScale")
    assert "pods is forbidden" in harness.message("AbleToScale", "cpu")


async def test_scales_are_fetched_without_permission_to_list_deployments(harness):
    harness.cluster.faults.forbid("list", "deployments")
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(20)
    assert harness.replicas() == 8
    assert harness.sent_requests("get", "/scale")


async def test_resource_metrics_are_read_from_the_cluster(harness):
    for index in range(4):
        harness.cluster.metrics.usage[f"shop/web-{index:05}"] = {"cpu": "90m"}
    containers = [{"name": "it", "resources": {"requests": {"cpu": "100m"}}}]
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": 4, "selector": {"matchLabels": labels}, "template": template}
    harness.cluster.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 45}}}
    harness.autoscaler("web", cpu)
    harness.start()
    await asyncio.sleep(80)
    assert harness.replicas() == 8
    assert harness.status()["currentMetrics"][0]["resource"]["current"]["averageUtilization"] == 90


async def test_external_metrics_are_read_from_the_cluster_if_configured(harness):
    harness.cluster.metrics.external["shop", "queue"] = ["40"]
    harness.deployment(replicas=4)
    harness.autoscaler("web", queue())
    harness.start(replace(WITHOUT_LEADER_ELECTION, external_metrics="cluster"))
    await asyncio.sleep(20)
    assert harness.replicas() == 8
