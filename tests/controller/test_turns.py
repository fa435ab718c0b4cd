"""Reconciles without anything to wait for: no tasks, few timers, and short turns on the event loop."""

import asyncio
import time
from collections.abc import Collection
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any

import pytest

from autoscaler.sharding.held_shards import HeldShards
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from tests.controller.harness import Harness
from tests.waiting import GIVE_UP

COUNT = 12


@dataclass
class SlowListener:
    """A listener that blocks the event loop longer than a turn takes, and counts what the loop does in between."""

    iterations: int = 0
    seen: list[int] = field(default_factory=list)
    """The iterations of the event loop at each decision that needed no task."""

    has_seen_three: asyncio.Event = field(default_factory=asyncio.Event)

    def on_decision(self, _key: str, _autoscaler: Autoscaler, _decision: Decision) -> None:
        task = asyncio.current_task()
        if task is not None and not task.get_name().startswith("reconcile"):
            time.sleep(0.006)
            self.seen.append(self.iterations)
        if len(self.seen) == 3:
            self.has_seen_three.set()

    def on_deleted(self, key: str) -> None:
        pass

    def on_leadership_acquired(self, keys: Collection[str], shards: HeldShards) -> None:
        pass

    def on_leadership_lost(self) -> None:
        pass

    async def run(self) -> None:
        while True:
            self.iterations += 1
            await asyncio.sleep(0)


def create_autoscalers(harness: Harness) -> None:
    harness.external_metrics.set("queue", 40)
    for index in range(COUNT):
        harness.deployment(f"web-{index}", replicas=8)
        harness.autoscaler(f"web-{index}")


@pytest.mark.looptime
async def test_reconcile_without_changes_creates_no_task(harness: Harness):
    create_autoscalers(harness)
    process = harness.start()
    await asyncio.sleep(20)
    created: list[asyncio.Task[Any]] = []

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, context: Context | None = None) -> asyncio.Task[Any]:
        created.append(asyncio.Task(coroutine, loop=loop, context=context))
        return created[-1]

    asyncio.get_running_loop().set_task_factory(factory)
    before = {key: decision.at for key, decision in process.decisions().items()}
    await asyncio.sleep(150)
    assert all(decision.at > before[key] for key, decision in process.decisions().items())
    assert [task for task in created if task.get_name().startswith("reconcile")] == []
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(1)
    asyncio.get_running_loop().set_task_factory(None)
    assert {f"reconcile {key}" for key in before} <= {task.get_name() for task in created}


@pytest.mark.looptime
async def test_autoscalers_that_become_due_shortly_after_each_other_are_reconciled_in_one_turn(harness: Harness):
    create_autoscalers(harness)
    process = harness.start()
    await asyncio.sleep(20)
    harness.external_metrics.set("queue", 41)  # within the tolerance; the keys become due every 2 ms
    await asyncio.sleep(0.2)
    times = sorted(decision.at for decision in process.decisions().values())
    assert len(set(times)) == 2  # the first at once, the others after the interval of the timer


async def test_event_loop_runs_between_turns(harness: Harness):
    create_autoscalers(harness)
    listener = SlowListener()
    running = asyncio.create_task(listener.run())
    process = harness.start(listeners=(listener,))
    async with asyncio.timeout(GIVE_UP):
        while len(process.decisions()) < COUNT:
            await asyncio.wait({running}, timeout=0.1)
        for controller in process.controllers.values():
            for key in process.decisions():
                controller._enqueue(key)
        await listener.has_seen_three.wait()
    running.cancel()
    assert len(set(listener.seen)) == len(listener.seen)
