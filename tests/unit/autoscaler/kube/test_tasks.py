"""Background tasks are restarted after an unexpected error, and do not end each other."""

import asyncio
from itertools import pairwise

import pytest
from prometheus_client import CollectorRegistry

from autoscaler.kube.metrics import KubeMetrics
from autoscaler.kube.tasks import background_tasks

pytestmark = pytest.mark.looptime


async def test_failed_task_is_restarted_with_a_growing_delay_and_others_continue(caplog):
    registry, starts, ticks = CollectorRegistry(), [], []

    async def fail() -> None:
        starts.append(asyncio.get_running_loop().time())
        raise ZeroDivisionError("whatever an object contains")

    async def tick() -> None:
        while True:
            await asyncio.sleep(10)
            ticks.append(1)

    async with background_tasks(KubeMetrics(registry)) as start:
        start(fail, "failing")
        start(tick, "ticking")
        await asyncio.sleep(101)
    assert [round(later - earlier) for earlier, later in pairwise(starts)] == [1, 2, 4, 8, 16, 32]
    assert len(ticks) == 10
    assert registry.get_sample_value("steadyscale_task_restarts_total", {"task": "failing"}) == len(starts)
    assert "background task failed and is restarted" in caplog.text


async def test_task_that_returns_is_not_restarted():
    starts = []

    async def end() -> None:
        starts.append(1)

    async with background_tasks(KubeMetrics()) as start:
        start(end, "ending")
        await asyncio.sleep(100)
    assert starts == [1]


async def test_task_that_was_cancelled_before_the_end_finishes_its_cleanup():
    released = []

    async def hold_a_lease() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)  # a request that releases the lease
            released.append("released")

    async with background_tasks(KubeMetrics(CollectorRegistry())) as start:
        task = start(hold_a_lease, "lease")
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
    assert released == ["released"]
