"""The controller does not act on outdated objects: after a partition, with stalled watches, after a restored backup."""

import asyncio
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from autoscaler.controller.run import ControllerProcess
from autoscaler.kube import watch
from autoscaler.kube.metrics import KubeMetrics
from autoscaler.settings import ControllerOptions
from tests.controller.harness import AUTOSCALERS, WITHOUT_LEADER_ELECTION, Harness
from tests.fakes.cluster import Cluster

pytestmark = pytest.mark.looptime

ELECTED = replace(WITHOUT_LEADER_ELECTION, leader_elect=True)


async def start(harness: Harness, options: ControllerOptions = WITHOUT_LEADER_ELECTION) -> ControllerProcess:
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    process = harness.start(options)
    await asyncio.sleep(60)
    return process


def cut_off(harness: Harness) -> None:
    """Fail every request and close all watches."""
    assert isinstance(harness.cluster, Cluster)
    harness.cluster.faults.fail_all_with = 503
    harness.cluster.close_watches()


async def test_leader_after_a_partition_does_not_scale_an_autoscaler_paused_meanwhile(harness):
    process = await start(harness, ELECTED)
    cut_off(harness)
    harness.edit(mode="Paused")
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(100)
    has_lost_leadership = not process.is_leader
    assert has_lost_leadership
    harness.cluster.faults.fail_all_with = 0
    await asyncio.sleep(120)
    assert process.is_leader
    assert harness.replicas() == 8


async def test_leader_after_a_partition_does_not_scale_for_an_autoscaler_deleted_meanwhile(harness):
    process = await start(harness, ELECTED)
    cut_off(harness)
    harness.cluster.delete(f"{AUTOSCALERS}/web")
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(100)
    harness.cluster.faults.fail_all_with = 0
    await asyncio.sleep(120)
    assert process.is_leader
    assert harness.replicas() == 8


async def test_stalled_watch_does_not_hide_a_change_for_more_than_90_seconds(harness):
    await start(harness)
    harness.cluster.faults.stall_watches()
    harness.edit(mode="Paused")
    await asyncio.sleep(90)
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(120)
    assert harness.replicas() == 8


@pytest.mark.parametrize("code", [403, 503])
async def test_refused_watch_does_not_hide_a_change_for_more_than_90_seconds(harness, code):
    await start(harness)
    harness.cluster.faults.fail_next(code, times=10_000, verb="watch", within="podautoscalers")
    harness.cluster.close_watches()
    harness.edit(mode="Paused")
    await asyncio.sleep(90)
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(120)
    assert harness.replicas() == 8


@pytest.mark.parametrize("resource", ["podautoscalers", "horizontalpodautoscalers"])
async def test_nothing_is_scaled_while_autoscalers_are_out_of_date(harness, resource, caplog):
    registry = CollectorRegistry()
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    process = harness.start()
    process.metrics = KubeMetrics(registry)
    await asyncio.sleep(60)
    for verb in ("list", "watch"):
        harness.cluster.faults.fail_next(503, times=10_000, verb=verb, within=f"/{resource}")
    harness.cluster.close_watches()
    await asyncio.sleep(91)
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(60)
    assert harness.replicas() == 8
    assert harness.condition("AbleToScale") == ("False", "FailedUpdateScale")
    assert f"{resource} are out of date" in harness.message("AbleToScale")
    assert (registry.get_sample_value("steadyscale_watch_age_seconds", {"resource": resource}) or 0) > 90
    assert "watched objects are out of date" in caplog.text
    harness.cluster.faults.clear()
    await asyncio.sleep(120)  # the list is retried after up to 45 seconds
    assert harness.replicas() == 12
    assert harness.condition("AbleToScale") == ("True", "ReadyForNewScale")
    assert "watched objects are up to date again" in caplog.text


async def test_scale_of_a_target_is_fetched_while_its_watch_is_out_of_date(harness):
    await start(harness)
    for verb in ("list", "watch"):
        harness.cluster.faults.fail_next(503, times=10_000, verb=verb, within="/deployments")
    harness.cluster.close_watches()
    await asyncio.sleep(95)
    harness.resize(4)
    await asyncio.sleep(30)
    assert harness.sent_requests("get", "/scale")
    assert harness.replicas() == 8


async def test_restored_backup_is_noticed_although_resource_versions_go_back(harness):
    await start(harness)
    backup = harness.cluster.backup()
    for size in range(5, 40):
        harness.edit(maxReplicas=100 + size)  # resourceVersions advance beyond those after the restore
    harness.cluster.restore(backup)
    harness.edit(mode="Paused")
    await asyncio.sleep(90)
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(60)
    assert harness.replicas() == 8


async def test_idle_watches_are_neither_listed_again_nor_out_of_date(harness, caplog):
    await start(harness)
    harness.cluster.requests.clear()
    await asyncio.sleep(900)
    assert harness.sent_requests("list") == []
    assert "out of date" not in caplog.text


async def test_watch_without_progress_is_listed_again_before_it_is_out_of_date(harness, monkeypatch):
    """Not every API server sends bookmarks for an idle resource: with etcd 3.4.23 none arrives."""
    monkeypatch.setattr(watch, "_WATCH_SECONDS", (28, 28))  # without a bound the third watch would end too late
    process = await start(harness)
    harness.cluster.faults.stall_watches()
    ages = []
    for turn in range(300):
        await asyncio.sleep(1)
        if turn % 10 == 0:
            harness.deployment(f"other-{turn}")  # resourceVersions are shared by all resources
        ages.append(max(each.age for each in process.metrics.watches if each.resource == "podautoscalers"))
    assert 70 < max(ages) < 90


async def test_last_scale_time_in_the_year_9999_does_not_end_the_watch(harness, caplog):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler()
    latest = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    status = {"lastScaleTime": latest.isoformat().replace("+00:00", "Z"), "observedGeneration": 1, "currentReplicas": 4}
    harness.cluster.patch(f"{AUTOSCALERS}/web/status", {"status": {**status, "desiredReplicas": 4}})
    harness.start()
    harness.deployment("other", replicas=4)
    harness.autoscaler("other")
    await asyncio.sleep(30)
    assert harness.replicas("other") == 8
    assert "listener failed" not in caplog.text
