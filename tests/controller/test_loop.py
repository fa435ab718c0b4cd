"""When autoscalers are reconciled, the order of writes, and the number of requests."""

import asyncio
import logging
from datetime import timedelta

import pytest
from msgspec.structs import replace

from adapter.fakecluster.cluster import loop_clock
from tests.controller.harness import AUTOSCALERS, DEPLOYMENTS, HPAS, WITHOUT_LEADER_ELECTION, queue, settings
from tests.controller.widgets import WIDGETS

pytestmark = pytest.mark.looptime


def now():
    return asyncio.get_running_loop().time()


async def test_target_is_scaled_up(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=5)
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(1)
    assert harness.replicas() == 8
    assert harness.events() == ["SuccessfulRescale"]
    assert harness.condition("AbleToScale") == ("True", "SucceededRescale")


async def test_target_is_scaled_down_after_the_stabilization_window(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(60)
    harness.external_metrics.set("queue", 10)
    await asyncio.sleep(280)
    assert (harness.replicas(), harness.condition("AbleToScale")) == (8, ("True", "ScaleDownStabilized"))
    await asyncio.sleep(40)
    assert harness.replicas() == 2


async def test_scale_is_written_before_event_and_status(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=5)
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(1)
    written = [
        request.split("/")[-1]
        for request in harness.sent_requests()
        if request.split()[0] in ("update", "patch", "create")
    ]
    assert written[0] == "scale"
    assert sorted(written[1:]) == ["events", "status"]


async def test_reconcile_without_changes_sends_no_requests(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(20)
    harness.cluster.requests.clear()
    harness.external_metrics.reads = 0
    await asyncio.sleep(150)
    assert harness.external_metrics.reads == 10
    assert harness.sent_requests() == []


async def test_reconcile_with_an_unavailable_metric_sends_no_requests_after_the_first(harness):
    harness.external_metrics.set("queue", "connection refused")
    harness.deployment()
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(20)
    harness.cluster.requests.clear()
    await asyncio.sleep(150)
    assert [request for request in harness.sent_requests() if "/events" not in request] == []


async def test_edited_spec_is_reconciled_at_once(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(20)
    harness.edit(maxReplicas=4)
    await asyncio.sleep(0.5)
    assert harness.replicas() == 4


async def test_changed_metric_is_reconciled_at_once(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(20)
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(0.5)
    assert harness.replicas() == 12


async def test_target_resized_by_another_client_is_reconciled_at_once(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(20)
    harness.resize(30)
    await asyncio.sleep(0.5)
    assert harness.replicas() == 20


async def test_created_target_is_reconciled_at_once(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment("other")
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(1)
    assert harness.condition("AbleToScale") == ("False", "FailedGetScale")
    assert harness.message("AbleToScale").endswith('deployments.apps "web" not found')
    harness.deployment(replicas=8)
    await asyncio.sleep(0.5)
    assert harness.condition("AbleToScale") == ("True", "ReadyForNewScale")


async def test_own_rescale_does_not_trigger_a_reconcile(harness):
    """Without behavior a reconcile may double the replicas: two in a row would double them twice."""
    harness.external_metrics.set("queue", 100)
    harness.deployment(replicas=3)
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(10)
    assert harness.replicas() == 6
    harness.external_metrics.set("queue", 100)
    await asyncio.sleep(4)
    assert harness.replicas() == 6
    await asyncio.sleep(2)
    assert harness.replicas() == 12


async def test_recreated_autoscaler_starts_with_an_empty_history(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    process = harness.start()
    await asyncio.sleep(60)
    harness.cluster.delete(f"{AUTOSCALERS}/web")
    await asyncio.sleep(1)
    assert process.decisions() == {}
    harness.external_metrics.set("queue", 10)
    harness.autoscaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    await asyncio.sleep(1)
    assert harness.replicas() == 2


async def test_first_reconciles_are_immediate_and_later_ones_are_spread_over_the_period(harness):
    harness.external_metrics.set("queue", 40)
    for index in range(60):
        harness.deployment(f"web-{index}", replicas=8)
        harness.autoscaler(f"web-{index}")
    process = harness.start()
    await asyncio.sleep(1)
    assert len(process.decisions()) == 60
    await asyncio.sleep(30)
    seconds = {decision.at.second for decision in process.decisions().values()}
    assert len(seconds) >= 10


async def test_slow_metric_does_not_delay_other_autoscalers(harness):
    harness.external_metrics.set("queue", 40)
    harness.external_metrics.set("hanging", 40)
    harness.external_metrics.delays["hanging"] = 3600
    for index in range(10):
        harness.deployment(f"slow-{index}")
        harness.autoscaler(f"slow-{index}", queue("hanging"))
        harness.deployment(f"web-{index}", replicas=4)
        harness.autoscaler(f"web-{index}")
    harness.start()
    await asyncio.sleep(4)
    assert [harness.replicas(f"web-{index}") for index in range(10)] == [8] * 10
    await asyncio.sleep(20)
    assert harness.condition("ScalingActive", "slow-3") == ("False", "FailedGetExternalMetric")
    assert "timed out" in harness.message("ScalingActive", "slow-3")


async def test_many_hanging_targets_do_not_delay_other_autoscalers(harness):
    harness.cluster.install_crd(WIDGETS)
    harness.cluster.faults.forbid("list", "widgets")  # so that each scale is fetched
    inject = harness.cluster.faults.inject

    async def hanging(verb: str, path: str, resource: str) -> None:
        if resource == "widgets/scale":
            await asyncio.sleep(3600)
        await inject(verb, path, resource)

    harness.cluster.faults.inject = hanging
    harness.external_metrics.set("queue", 40)
    harness.external_metrics.set("other", 40)
    for index in range(400):
        target = {"apiVersion": "example.com/v1", "kind": "Widget", "name": f"w{index}"}
        harness.autoscaler(f"slow-{index}", scaleTargetRef=target)
    harness.deployment(replicas=8)
    harness.autoscaler("web", queue("other"))
    harness.start()
    await asyncio.sleep(120)
    for number in (60, 80):
        harness.external_metrics.set("other", number)
        await asyncio.sleep(1)
        assert harness.replicas() == number / 5
        await asyncio.sleep(17)


async def test_metric_that_times_out_does_not_block_scaling_up(harness):
    harness.external_metrics.set("queue", 60)
    harness.external_metrics.delays["hanging"] = 3600
    harness.deployment(replicas=8)
    harness.autoscaler("web", queue("hanging"), queue())
    harness.start()
    await asyncio.sleep(12)
    assert harness.replicas() == 12


async def test_conflicting_hpa_stops_scaling_and_is_named(harness):
    harness.external_metrics.set("queue", 60)
    harness.deployment(replicas=8)
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    harness.cluster.create(HPAS, {"metadata": {"name": "old"}, "spec": {"scaleTargetRef": reference, "maxReplicas": 9}})
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(30)
    assert harness.replicas() == 8
    assert harness.condition("AbleToScale") == ("False", "AmbiguousTarget")
    assert "HorizontalPodAutoscaler/shop/old" in harness.message("AbleToScale")
    harness.cluster.delete(f"{HPAS}/old")
    await asyncio.sleep(0.5)
    assert harness.replicas() == 12


async def test_two_podautoscalers_with_the_same_target_do_not_scale(harness):
    harness.external_metrics.set("queue", 60)
    harness.deployment(replicas=8)
    harness.autoscaler()
    harness.autoscaler("other", target="web")
    harness.start()
    await asyncio.sleep(30)
    assert harness.replicas() == 8
    assert "PodAutoscaler/shop/web" in harness.message("AbleToScale", "other")
    assert "PodAutoscaler/shop/other" in harness.message("AbleToScale", "web")


async def test_overlapping_selectors_are_reported(harness):
    harness.external_metrics.set("queue", 60)
    labels = {"app": "shared"}
    for name in ("one", "two"):
        spec = {"replicas": 4, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}
        harness.cluster.create(DEPLOYMENTS, {"metadata": {"name": name}, "spec": spec})
        harness.autoscaler(name)
    harness.start()
    await asyncio.sleep(40)
    assert harness.condition("ScalingActive", "one") == ("False", "AmbiguousSelector")
    assert harness.condition("ScalingActive", "two") == ("False", "AmbiguousSelector")


async def test_autoscaler_with_mode_dry_run_does_not_stop_another_one_of_the_same_target(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=5)
    harness.autoscaler("trial", target="web", mode="DryRun")
    harness.autoscaler("web")
    harness.start()
    await asyncio.sleep(60)
    assert harness.condition("ScalingActive", "web") == ("True", "ValidMetricFound")
    assert harness.condition("ScalingActive", "trial") == ("True", "ValidMetricFound")
    assert harness.replicas() == 8


async def test_invalid_spec_is_reported_with_its_fields_and_does_not_affect_others(harness):
    harness.external_metrics.set("queue", 60)
    harness.deployment(replicas=8)
    harness.deployment("other", replicas=8)
    harness.autoscaler("web", minReplicas=9, maxReplicas=4)
    harness.autoscaler("other")
    harness.start()
    await asyncio.sleep(20)
    assert harness.condition("ScalingActive") == ("False", "InvalidSpec")
    assert "spec.maxReplicas" in harness.message("ScalingActive")
    assert (harness.replicas(), harness.replicas("other")) == (8, 12)
    assert harness.events() == ["InvalidSpec"]
    harness.edit(maxReplicas=20)
    await asyncio.sleep(0.5)
    assert harness.replicas() == 9


async def test_dry_run_reports_the_decision_and_writes_no_scale(harness):
    harness.external_metrics.set("queue", 60)
    harness.deployment(replicas=8)
    harness.autoscaler(mode="DryRun")
    harness.start()
    await asyncio.sleep(40)
    assert harness.replicas() == 8
    assert harness.status()["desiredReplicas"] == 12
    assert harness.condition("AbleToScale") == ("False", "DryRun")
    assert harness.sent_requests("update", "/scale") == []


async def test_pause_ends_at_paused_until(harness):
    harness.external_metrics.set("queue", 60)
    harness.deployment(replicas=8)
    until = loop_clock().replace(microsecond=0).isoformat().replace("00:00:00", "00:00:47").replace("+00:00", "Z")
    harness.autoscaler(mode="Paused", pausedUntil=until)
    harness.start()
    await asyncio.sleep(46)
    assert (harness.replicas(), harness.condition("AbleToScale")) == (8, ("False", "Paused"))
    await asyncio.sleep(1.5)
    assert harness.replicas() == 12


async def test_sync_period_is_configurable(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    harness.start(settings(sync_period=WITHOUT_LEADER_ELECTION.settings.sync_period / 5))
    await asyncio.sleep(4)
    harness.external_metrics.reads = 0
    await asyncio.sleep(30)
    assert harness.external_metrics.reads == 10


async def test_thousand_new_autoscalers_are_reconciled_within_seconds(harness):
    harness.external_metrics.set("queue", 60)
    harness.cluster.workloads.pause()
    process = harness.start()
    await asyncio.sleep(1)
    for index in range(1000):
        harness.deployment(f"web-{index}", replicas=8)
        harness.autoscaler(f"web-{index}")
    await asyncio.sleep(10)
    assert len(process.decisions()) == 1000
    assert {harness.replicas(f"web-{index}") for index in range(0, 1000, 37)} == {12}
    harness.cluster.requests.clear()
    await asyncio.sleep(60)
    assert len(harness.sent_requests("update", "/scale")) == 0


async def test_only_decisions_with_changes_are_logged(harness, caplog):
    caplog.set_level(logging.INFO, logger="autoscaler.controller.reporting")
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(100)
    caplog.clear()
    await asyncio.sleep(100)
    assert caplog.records == []
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(1)
    (record,) = caplog.records
    assert record.message == "rescaled"
    expected = {
        "autoscaler": "shop/web",
        "previous_replicas": 8,
        "replicas": 12,
        "reason": "external metric queue(nil) above target",
    }
    assert {name: vars(record)[name] for name in expected} == expected
    caplog.clear()
    harness.external_metrics.set("queue", "connection refused")
    await asyncio.sleep(60)
    assert [vars(record)["conditions"] for record in caplog.records if "FailedGet" in vars(record)["conditions"]] == [
        "AbleToScale=True/SucceededGetScale, ScalingActive=False/FailedGetExternalMetric"
    ]


async def test_overload_slows_down_all_autoscalers_evenly(harness, caplog):
    names = [f"w{index}" for index in range(40)]
    for name in names:  # all reconciles together take 3.6 seconds of a period of two
        harness.external_metrics.set(name, 40)
        harness.external_metrics.delays[name] = 0.09
        harness.deployment(name, replicas=8)
        harness.autoscaler(name, queue(name))
    reads: dict[str, int] = dict.fromkeys(names, 0)
    original_read = harness.external_metrics.read

    async def read(namespace, metric, selector):
        reads[metric] += 1
        return await original_read(namespace, metric, selector)

    harness.external_metrics.read = read
    harness.start(replace(settings(sync_period=timedelta(seconds=2)), concurrent_syncs=1))
    await asyncio.sleep(60)
    assert harness.registry.get_sample_value("steadyscale_autoscaler_sync_period_ratio") > 1.5
    assert "controller overloaded: reconciles start late" in caplog.messages
    before = dict(reads)
    await asyncio.sleep(60)
    counts = [reads[name] - before[name] for name in names]
    assert max(counts) - min(counts) <= 1
    assert 60 / 2 > min(counts) >= 60 / (40 * 0.1) - 1
