"""How many status writes a rescale causes: two, as upstream, and none if nothing has changed."""

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


async def test_rescale_is_written_by_its_reconcile_and_by_the_next_one(harness):
    await start(harness)
    for value, replicas in ((40, 8), (20, 4), (30, 6)):
        harness.cluster.requests.clear()
        harness.external_metrics.set("queue", value)
        await asyncio.sleep(200)
        assert (harness.replicas(), len(status_writes(harness))) == (replicas, 2)


async def test_unchanged_status_is_not_written(harness):
    await start(harness)
    await asyncio.sleep(200)
    assert status_writes(harness) == []
    assert [request for request in harness.sent_requests() if not request.startswith("list")] == []
