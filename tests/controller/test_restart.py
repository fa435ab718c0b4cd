"""History, pending status and leadership across restarts."""

import asyncio

import pytest
from msgspec.structs import replace

from tests.controller.harness import WITHOUT_LEADER_ELECTION, queue

pytestmark = pytest.mark.looptime

ELECTED = replace(WITHOUT_LEADER_ELECTION, leader_elect=True)


async def restart(harness, process, after=0):
    await harness.stop(process)
    await asyncio.sleep(after)
    return harness.start()


async def test_stabilization_window_is_not_restarted(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    process = harness.start()
    await asyncio.sleep(60)
    harness.external_metrics.set("queue", 10)
    await asyncio.sleep(200)
    await restart(harness, process, after=5)
    await asyncio.sleep(80)
    assert harness.replicas() == 8
    await asyncio.sleep(40)
    assert harness.replicas() == 2


async def test_stabilization_window_is_not_forgotten(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    process = harness.start()
    await asyncio.sleep(60)
    harness.external_metrics.set("queue", 10)
    await asyncio.sleep(100)
    await restart(harness, process)
    await asyncio.sleep(150)
    assert harness.replicas() == 8


async def test_pending_status_is_flushed_at_shutdown(harness):
    slow_policy = {"type": "Pods", "value": 2, "periodSeconds": 120}
    harness.external_metrics.set("queue", 20)
    harness.deployment(replicas=4)
    harness.autoscaler(behavior={"scaleUp": {"policies": [slow_policy]}})
    process = harness.start()
    await asyncio.sleep(20)
    harness.cluster.faults.fail_next(503, times=2, verb="update", within="/status")
    harness.external_metrics.set("queue", 40)
    await asyncio.sleep(0.2)
    assert harness.replicas() == 6
    assert "up=2@" not in harness.status()["controllerState"]
    await harness.stop(process)
    assert "up=2@" in harness.status()["controllerState"]
    harness.start()
    await asyncio.sleep(60)
    assert harness.replicas() == 6


async def test_status_is_written_if_stopped_after_the_scale_write(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    process = harness.start()
    await asyncio.sleep(20)
    harness.cluster.requests.clear()
    harness.external_metrics.set("queue", 60)
    while not harness.sent_requests("update", "/scale"):  # noqa: ASYNC110 - the fake cluster has no event for it
        await asyncio.sleep(0)
    await harness.stop(process)
    assert harness.replicas() == 12
    assert harness.status()["desiredReplicas"] == 12
    assert harness.status()["lastScaleTime"]


async def test_scaling_policy_considers_rescales_before_the_restart(harness):
    slow_policy = {"type": "Pods", "value": 2, "periodSeconds": 120}
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler(behavior={"scaleUp": {"policies": [slow_policy]}})
    process = harness.start()
    await asyncio.sleep(10)
    assert harness.replicas() == 6
    await restart(harness, process)
    await asyncio.sleep(100)
    assert harness.replicas() == 6
    await asyncio.sleep(40)
    assert harness.replicas() == 8


async def test_failure_duration_continues_after_a_restart(harness):
    harness.external_metrics.set("queue", "connection refused")
    harness.deployment(replicas=4)
    harness.autoscaler("web", queue(fallback={"replicas": 10}))
    process = harness.start()
    await asyncio.sleep(170)
    await restart(harness, process)
    await asyncio.sleep(5)
    assert harness.replicas() == 4
    await asyncio.sleep(6)
    assert harness.replicas() == 8
    assert harness.condition("ExternalMetricFallbackActive") == ("True", "FallbackActive")


async def test_target_scaled_to_zero_is_scaled_up_after_a_restart(harness):
    harness.external_metrics.set("queue", 0)
    harness.deployment(replicas=4)
    harness.autoscaler(minReplicas=0, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    process = harness.start()
    await asyncio.sleep(20)
    assert harness.replicas() == 0
    await restart(harness, process)
    harness.external_metrics.set("queue", 20)
    await asyncio.sleep(1)
    assert harness.replicas() == 4


async def test_unchanged_history_is_not_written(harness):
    harness.external_metrics.set("queue", 10)
    harness.deployment(replicas=8)
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(30)
    harness.cluster.requests.clear()
    await asyncio.sleep(200)
    assert harness.sent_requests() == []


# --- leader election -------------------------------------------------------------------------------------------------


async def test_only_one_of_two_processes_is_leader(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=5)
    harness.autoscaler()
    first, second = harness.start(ELECTED, "one"), harness.start(ELECTED, "two")
    await asyncio.sleep(20)
    assert harness.replicas() == 8
    assert [first.is_leader, second.is_leader].count(True) == 1
    assert harness.events() == ["SuccessfulRescale"]


async def test_stopped_leader_hands_over_within_two_seconds(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    first = harness.start(ELECTED, "one")
    await asyncio.sleep(5)
    second = harness.start(ELECTED, "two")
    await asyncio.sleep(5)
    started = asyncio.get_running_loop().time()
    await harness.stop(first)
    while not second.is_leader:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.05)
    assert asyncio.get_running_loop().time() - started < 2
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(1)
    assert harness.replicas() == 12


async def test_leader_that_cannot_renew_stops_writing(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler()
    first = harness.start(ELECTED, "one")
    await asyncio.sleep(20)
    harness.cluster.faults.fail_next(503, times=1000, within="/leases/")
    await asyncio.sleep(13)
    assert not first.is_leader
    harness.cluster.requests.clear()
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(30)
    assert harness.replicas() == 8
    assert harness.sent_requests("update", "/scale") == []


async def test_new_leader_after_a_crash_does_not_scale_twice(harness):
    harness.external_metrics.set("queue", 100)
    harness.deployment(replicas=3)
    harness.autoscaler()
    first = harness.start(ELECTED, "one")
    await asyncio.sleep(5)
    assert harness.replicas() == 6
    second = harness.start(ELECTED, "two")
    await asyncio.sleep(3.3)
    harness.cluster.faults.fail_next(500, verb="update", within="/leases/")  # prevents the release of the lease
    await harness.stop(first)
    await asyncio.sleep(5)
    assert not second.is_leader
    assert harness.replicas() == 6
    await asyncio.sleep(20)
    assert second.is_leader
    assert harness.replicas() == 12


async def test_new_leader_waits_one_period_after_the_last_rescale(harness):
    harness.external_metrics.set("queue", 100)
    harness.deployment(replicas=3)
    harness.autoscaler()
    process = harness.start()
    await asyncio.sleep(5)
    await restart(harness, process)
    await asyncio.sleep(8)
    assert harness.replicas() == 6
    await asyncio.sleep(3)
    assert harness.replicas() == 12
