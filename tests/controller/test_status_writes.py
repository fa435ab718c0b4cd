"""How many status writes a rescale causes: one, two for a scale to zero, and none if nothing has changed."""

import asyncio

import pytest

pytestmark = pytest.mark.looptime

AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}


async def start(harness, **spec):
    harness.external_metrics.set("queue", 20)
    harness.deployment(replicas=4)
    harness.autoscaler(behavior=AT_ONCE, **spec)
    harness.start()
    await asyncio.sleep(100)
    harness.cluster.requests.clear()


def status_writes(harness):
    return harness.sent_requests("update", "podautoscalers/web/status")


async def test_rescale_causes_one_status_write(harness):
    await start(harness)
    harness.cluster.workloads.pause()  # so that status.replicas, and with them the average, stay the same
    for value, replicas in ((40, 8), (20, 4), (30, 6)):
        harness.cluster.requests.clear()
        harness.external_metrics.set("queue", value)
        await asyncio.sleep(200)
        assert (harness.replicas(), len(status_writes(harness))) == (replicas, 1)


async def test_status_after_a_rescale_has_the_written_replicas(harness):
    await start(harness)
    harness.external_metrics.set("queue", 40)
    await asyncio.sleep(1)
    status = harness.status()
    assert (status["currentReplicas"], status["desiredReplicas"]) == (8, 8)
    assert harness.condition("AbleToScale") == ("True", "SucceededRescale")


async def test_average_that_changes_with_the_replicas_is_written_by_the_next_reconcile(harness):
    await start(harness)
    harness.external_metrics.set("queue", 40)
    await asyncio.sleep(200)
    assert len(status_writes(harness)) == 2
    assert harness.status()["targets"] == "5/5 (avg)"


async def test_scale_to_zero_causes_two_status_writes(harness):
    await start(harness, minReplicas=0)
    harness.cluster.workloads.pause()
    harness.external_metrics.set("queue", 0)
    await asyncio.sleep(200)
    assert (harness.replicas(), len(status_writes(harness))) == (0, 2)


async def test_unchanged_status_is_not_written(harness):
    await start(harness)
    await asyncio.sleep(200)
    assert status_writes(harness) == []
    assert [request for request in harness.sent_requests() if not request.startswith("list")] == []
