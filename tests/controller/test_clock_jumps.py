"""Durations while the wall clock of the machine jumps, and successors whose wall clock is wrong."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from random import Random

import pytest

from adapter.fakecluster.cluster import loop_clock, loop_time
from adapter.process import ProcessClock
from tests.controller.harness import EVENTS, queue, running_harness

pytestmark = pytest.mark.looptime

HOUR, YEAR = timedelta(hours=1), timedelta(days=365)
JUMPS = (-YEAR, -HOUR, HOUR, YEAR)
FALLBACK = {"replicas": 10, "failureDurationSeconds": 600}
NO_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 0}}


@dataclass
class Machine:
    """A machine whose wall clock differs from the right time."""

    error: timedelta = timedelta(0)

    def wall_clock(self):
        return loop_clock() + self.error

    def clock(self, *, aligned=False):
        """Return the clock of a process that starts now; ``aligned``: it knows the time of the API server."""
        clock = ProcessClock(self.wall_clock, loop_time)
        if aligned:
            clock.align(loop_clock())
        return clock


@pytest.mark.parametrize("jump", JUMPS, ids=str)
async def test_target_is_scaled_up_after_a_jump(harness, jump):
    machine = Machine()
    harness.external_metrics.set("queue", 20)
    harness.deployment(replicas=4)
    harness.autoscaler()
    harness.start(clock=machine.clock())
    await asyncio.sleep(30)
    machine.error += jump
    harness.external_metrics.values["queue"] = (40_000,)  # without a notification: the next regular reconcile reads it
    await asyncio.sleep(16)
    assert harness.replicas() == 8


@pytest.mark.parametrize("jump", JUMPS, ids=str)
async def test_fallback_comes_on_time(harness, jump):
    machine = Machine()
    harness.external_metrics.set("queue", "connection refused")
    harness.deployment(replicas=5)
    harness.autoscaler("web", queue(fallback=FALLBACK))
    harness.start(clock=machine.clock())
    await asyncio.sleep(20)
    machine.error += jump
    await asyncio.sleep(570)
    assert harness.condition("ExternalMetricFallbackActive") == ("False", "FallbackPending")
    await asyncio.sleep(20)
    assert harness.condition("ExternalMetricFallbackActive") == ("True", "FallbackActive")
    assert harness.replicas() == 10


@pytest.mark.parametrize("jump", JUMPS, ids=str)
async def test_stabilization_window_ends_on_time(harness, jump):
    machine = Machine()
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=8)
    harness.autoscaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 600}})
    harness.start(clock=machine.clock())
    await asyncio.sleep(20)
    harness.external_metrics.set("queue", 10)
    await asyncio.sleep(20)
    machine.error += jump
    await asyncio.sleep(540)
    assert harness.replicas() == 8
    await asyncio.sleep(60)
    assert harness.replicas() == 2


@pytest.mark.parametrize("jump", JUMPS, ids=str)
async def test_policy_period_ends_on_time(harness, jump):
    machine = Machine()
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}})
    harness.start(clock=machine.clock())
    await asyncio.sleep(20)
    machine.error += jump
    await asyncio.sleep(560)
    assert harness.replicas() == 6
    await asyncio.sleep(60)
    assert harness.replicas() == 8


async def test_jump_causes_no_status_write(harness):
    machine = Machine()
    harness.external_metrics.set("queue", 20)
    harness.deployment(replicas=4)
    harness.autoscaler()
    harness.start(clock=machine.clock())
    await asyncio.sleep(60)
    harness.cluster.requests.clear()
    for jump in JUMPS:
        machine.error += jump
        await asyncio.sleep(60)
    assert harness.sent_requests("update") == []


async def test_timestamps_are_right_after_a_jump(harness):
    machine = Machine()
    harness.external_metrics.set("queue", 20)
    harness.deployment(replicas=4)
    harness.autoscaler()
    harness.start(clock=machine.clock())
    await asyncio.sleep(30)
    machine.error -= HOUR
    harness.external_metrics.set("queue", 40)
    await asyncio.sleep(5)
    rescaled = harness.status()["lastScaleTime"]
    assert rescaled == (loop_clock() - timedelta(seconds=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert [event["lastTimestamp"] for event in harness.cluster.list(EVENTS)] == [rescaled]


@pytest.mark.parametrize("error", JUMPS, ids=str)
async def test_successor_with_a_wrong_wall_clock_continues_the_fallback(harness, error):
    harness.external_metrics.set("queue", "connection refused")
    harness.deployment(replicas=5)
    harness.autoscaler("web", queue(fallback=FALLBACK))
    process = harness.start(clock=Machine().clock())
    await asyncio.sleep(300)
    await harness.stop(process)
    harness.start(clock=Machine(error).clock(aligned=True))
    await asyncio.sleep(290)
    assert harness.condition("ExternalMetricFallbackActive") == ("False", "FallbackPending")
    await asyncio.sleep(20)
    assert harness.condition("ExternalMetricFallbackActive") == ("True", "FallbackActive")


@pytest.mark.parametrize("error", JUMPS, ids=str)
async def test_successor_with_a_wrong_wall_clock_continues_windows_and_policies(harness, error):
    machine = Machine()
    policy = {"type": "Pods", "value": 2, "periodSeconds": 600}
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler(behavior={"scaleUp": {"policies": [policy]}})
    process = harness.start(clock=machine.clock())
    await asyncio.sleep(300)
    await harness.stop(process)
    harness.start(clock=Machine(error).clock(aligned=True))
    await asyncio.sleep(280)
    assert harness.replicas() == 6
    await asyncio.sleep(40)
    assert harness.replicas() == 8


@pytest.mark.parametrize("error", [-YEAR, -HOUR], ids=str)
async def test_timestamps_in_the_future_count_as_now(harness, error):
    """The API server's time is unknown, and the previous leader was ahead: every timestamp is in the future."""
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler("web", queue(fallback=FALLBACK))
    process = harness.start(clock=Machine().clock())
    await asyncio.sleep(20)
    harness.external_metrics.set("queue", "connection refused")
    await asyncio.sleep(20)
    await harness.stop(process)
    clock = Machine(error).clock()
    harness.start(clock=clock)
    await asyncio.sleep(20)
    now = clock().strftime("%Y-%m-%dT%H:%M:%SZ")
    status = harness.status()
    times = [status["lastScaleTime"], *(each["lastTransitionTime"] for each in status["conditions"])]
    assert [time for time in times if time > now] == []
    await asyncio.sleep(570)
    assert harness.condition("ExternalMetricFallbackActive") == ("False", "FallbackPending")
    await asyncio.sleep(30)
    assert harness.condition("ExternalMetricFallbackActive") == ("True", "FallbackActive")


async def test_successor_behind_does_not_wait_for_the_last_scale_time(harness):
    harness.external_metrics.set("queue", 20)
    harness.deployment(replicas=4)
    harness.autoscaler()
    process = harness.start(clock=Machine().clock())
    await asyncio.sleep(20)
    harness.external_metrics.set("queue", 40)
    await asyncio.sleep(5)
    await harness.stop(process)
    harness.start(clock=Machine(-HOUR).clock())
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(16)
    assert harness.replicas() == 12


async def test_condition_from_the_future_is_cleared_when_the_target_has_replicas(harness):
    harness.external_metrics.set("queue", 0)
    harness.deployment(replicas=4)
    harness.autoscaler(minReplicas=0, behavior=NO_WINDOW)
    process = harness.start(clock=Machine().clock())
    await asyncio.sleep(20)
    assert harness.condition("ScaledToZero")[0] == "True"
    await harness.stop(process)
    harness.resize(3)
    harness.external_metrics.set("queue", 15)
    harness.start(clock=Machine(-HOUR).clock())
    await asyncio.sleep(150)
    assert harness.condition("ScaledToZero")[0] == "False"


def random_scenario(seed):
    """Return steps of a duration, a value of the metric, a jump of the wall clock, and whether the process restarts."""
    random = Random(seed)  # noqa: S311 - the same steps in each run
    jumps = (timedelta(0), -YEAR, -HOUR, -timedelta(seconds=90), timedelta(seconds=90), HOUR, YEAR)
    values = (0, 10, 20, 40, "connection refused", "connection refused")
    return [
        (random.choice((5, 20, 100, 310)), random.choice(values), random.choice(jumps), random.random() < 0.3)
        for _ in range(6)
    ]


@pytest.mark.parametrize("seed", range(6))
async def test_decisions_do_not_depend_on_the_wall_clock(seed):
    scenario = random_scenario(seed)
    without_jumps = [(seconds, value, timedelta(0), restarts) for seconds, value, _, restarts in scenario]
    assert await replicas_over_time(scenario) == await replicas_over_time(without_jumps)


async def replicas_over_time(scenario):
    """Return the replicas and conditions every five seconds of a scenario with jumps."""
    machine, recorded = Machine(), []
    async with running_harness() as harness:
        harness.external_metrics.set("queue", 20)
        harness.deployment(replicas=4)
        behavior = {"scaleUp": {"policies": [{"type": "Pods", "value": 3, "periodSeconds": 60}]}}
        harness.autoscaler("web", queue(fallback={"replicas": 10}), minReplicas=0, behavior=behavior)
        process = harness.start(clock=machine.clock())
        await asyncio.sleep(1)
        for seconds, value, jump, restarts in scenario:
            machine.error += jump
            harness.external_metrics.set("queue", value)
            if restarts:
                await harness.stop(process)
                process = harness.start(clock=machine.clock(aligned=True))
            await asyncio.sleep(0.5)  # so that no reconcile is due at the moment of a record
            for _ in range(seconds // 5):
                await asyncio.sleep(5)
                conditions = {each["type"]: each["status"] for each in harness.status().get("conditions", ())}
                recorded.append((harness.replicas(), conditions))
    return recorded
