"""Scale writes whose response is lost: the API server may have applied them, or may still apply them."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from autoscaler.controller.run import ControllerProcess
from autoscaler.types.history import History
from autoscaler.values.timestamps import format_rfc3339
from tests.controller.harness import Harness, running_harness
from tests.fakes.fault_injection import LostResponse

pytestmark = pytest.mark.looptime

TO_ZERO: dict[str, Any] = {"minReplicas": 0, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
FOUR_PER_MINUTE = {"scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}}
UNKNOWN = ("Unknown", "RescaleOutcomeUnknown")
LATE = {"delay": 15.0}
HELD = {"hold": 12.0, "times": 2}
DROPPED = {"drop": True, "times": 2}
FAULTS = [pytest.param(LATE, id="late"), pytest.param(HELD, id="held"), pytest.param(DROPPED, id="dropped")]


async def start(harness: Harness, replicas: int = 8, **spec: Any) -> ControllerProcess:
    harness.external_metrics.set("queue", replicas * 5)
    harness.deployment(replicas=replicas)
    harness.autoscaler(**spec)
    process = harness.start()
    await asyncio.sleep(20)
    return process


def lose(harness: Harness, **fault: Any) -> None:
    """Lose the responses to the next writes of the scale."""
    harness.cluster.faults.lost_responses.append(LostResponse("update", "/scale", **fault))


def history_of(process: ControllerProcess) -> History:
    return process.controllers[0].reconciler.state["shop/web"].history


@pytest.mark.parametrize("fault", FAULTS)
async def test_target_is_scaled_up_from_a_zero_whose_response_was_lost(harness, fault):
    await start(harness, **TO_ZERO)
    lose(harness, **fault)
    harness.external_metrics.set("queue", 0)
    await asyncio.sleep(45)
    assert harness.replicas() == 0
    assert harness.condition("ScaledToZero") == ("True", "ScaledToZero")
    harness.external_metrics.set("queue", 20)
    await asyncio.sleep(60)
    assert harness.replicas() == 4
    assert harness.condition("ScaledToZero") == ("False", "NotScaledToZero")


@pytest.mark.parametrize("fault", FAULTS)
async def test_rate_policy_counts_a_step_whose_response_was_lost(harness, fault):
    await start(harness, behavior=FOUR_PER_MINUTE)
    lose(harness, **fault)
    harness.external_metrics.set("queue", 100)
    await asyncio.sleep(50)
    assert harness.replicas() == 12
    assert harness.events().count("SuccessfulRescale") == 1
    await asyncio.sleep(70)
    assert harness.replicas() == 16


async def test_unknown_outcome_is_reported_and_then_recorded_as_a_rescale_at_the_time_of_the_write(harness):
    process = await start(harness, behavior=FOUR_PER_MINUTE)
    harness.cluster.faults.fail_next(503, verb="get", within="/scale")
    harness.cluster.faults.stall_watches()
    lose(harness, **LATE)
    harness.external_metrics.set("queue", 100)
    await asyncio.sleep(11)
    assert harness.condition("AbleToScale") == UNKNOWN
    assert "not known whether the target scale was updated to 12" in harness.message("AbleToScale")
    assert harness.events() == ["RescaleOutcomeUnknown"]
    assert "unknown=8>12@" in harness.status()["controllerState"]
    await asyncio.sleep(10)
    assert harness.condition("AbleToScale") == ("True", "ReadyForNewScale")
    assert harness.events() == ["RescaleOutcomeUnknown", "SuccessfulRescale"]
    assert harness.status()["lastScaleTime"] == "2026-01-01T00:00:20Z"
    (event,) = history_of(process).scale_ups
    assert (event.change, event.at.second) == (4, 20)
    assert "unknown" not in harness.status()["controllerState"]


async def test_scaled_to_zero_is_withdrawn_once_the_zero_was_certainly_not_applied(harness):
    process = await start(harness, **TO_ZERO)
    await asyncio.sleep(75)
    harness.cluster.faults.fail_next(504, verb="update", within="/scale")
    harness.external_metrics.set("queue", 0)
    await asyncio.sleep(1)
    harness.external_metrics.set("queue", 40)
    await asyncio.sleep(60)
    assert harness.replicas() == 8
    assert len(history_of(process).unknown) == 1
    assert harness.condition("ScaledToZero") == ("True", "ScaledToZero")
    await asyncio.sleep(30)
    assert history_of(process).unknown == ()
    assert harness.condition("ScaledToZero") == ("False", "NotScaledToZero")


async def test_later_version_of_the_target_shows_that_the_write_was_not_applied(harness):
    process = await start(harness, **TO_ZERO)
    await asyncio.sleep(75)
    harness.cluster.faults.fail_next(504, verb="update", within="/scale")
    harness.external_metrics.set("queue", 0)
    await asyncio.sleep(1)
    harness.external_metrics.set("queue", 40)
    harness.resize(7)
    await asyncio.sleep(20)
    assert history_of(process).unknown == ()
    assert harness.condition("ScaledToZero") == ("False", "NotScaledToZero")
    assert harness.replicas() == 8


async def test_failed_write_is_repeated_in_the_next_period_although_its_outcome_is_unknown(harness):
    process = await start(harness)
    harness.cluster.faults.fail_next(500, verb="update", within="/scale")
    harness.external_metrics.set("queue", 60)
    await asyncio.sleep(16)
    assert harness.replicas() == 12
    assert history_of(process).unknown == ()


async def test_scale_up_from_zero_without_response_keeps_the_zero_as_own(harness):
    await start(harness, **TO_ZERO)
    harness.external_metrics.set("queue", 0)
    await asyncio.sleep(90)
    harness.cluster.faults.fail_next(504, verb="update", within="/scale")
    harness.external_metrics.set("queue", 20)
    await asyncio.sleep(1)
    assert harness.condition("ScaledToZero") == ("True", "ScaledToZero")
    await asyncio.sleep(30)
    assert harness.replicas() == 4
    assert harness.condition("ScaledToZero") == ("False", "NotScaledToZero")


@pytest.mark.parametrize("after", [5, 11], ids=["during the write", "after the timeout"])
async def test_next_leader_counts_a_step_whose_outcome_was_unknown(harness, after):
    process = await start(harness, behavior=FOUR_PER_MINUTE)
    harness.cluster.faults.fail_next(503, times=100, verb="get", within="/scale")
    harness.cluster.faults.stall_watches()
    lose(harness, delay=30.0)
    harness.external_metrics.set("queue", 100)
    await asyncio.sleep(after)
    await harness.stop(process)
    assert "unknown=8>12@" in harness.status()["controllerState"]
    harness.cluster.faults.clear()
    harness.cluster.faults.watches_may_send.set()
    process = harness.start()
    await asyncio.sleep(40)
    assert harness.replicas() == 12
    (event,) = history_of(process).scale_ups
    assert (event.change, event.at.second) == (4, 20)
    await asyncio.sleep(40)
    assert harness.replicas() == 16


async def test_next_leader_scales_up_from_a_zero_that_is_applied_after_the_restart(harness):
    process = await start(harness, **TO_ZERO)
    lose(harness, hold=20.0)
    harness.external_metrics.set("queue", 0)
    await asyncio.sleep(1)
    harness.external_metrics.set("queue", 40)
    await harness.stop(process)
    harness.start()
    await asyncio.sleep(16)
    assert harness.replicas() == 8
    await asyncio.sleep(30)
    assert harness.replicas() == 8
    assert any(request.startswith("update") for request in harness.sent_requests(within="/scale"))
    await asyncio.sleep(90)
    assert harness.condition("ScaledToZero") == ("False", "NotScaledToZero")


@dataclass
class RandomFaults:
    """Loses responses to requests for the scale at random; none is handled late."""

    random: random.Random
    is_on: bool = True
    counts: dict[str, int] = field(default_factory=dict)

    def take(self, verb: str, path: str) -> LostResponse | None:
        if not self.is_on or not path.endswith("/scale"):
            return None
        kinds: list[dict[str, Any]] = [{}, {"drop": True}, *([LATE] if verb == "update" else [])]
        kind = self.random.choice(kinds)
        for name in kind:
            self.counts[f"{verb} {name}"] = self.counts.get(f"{verb} {name}", 0) + 1
        return LostResponse(verb, "/scale", **kind) if kind else None


async def run_randomly(seed: int, faults: RandomFaults | None) -> tuple[Any, ...]:
    """Change the metric at random times; return history, status and replicas in the end."""
    changes = random.Random(seed)  # noqa: S311 - reproducible
    policies = [{"type": "Pods", "value": changes.randint(1, 5), "periodSeconds": changes.choice([30, 60, 120])}]
    rules = {"stabilizationWindowSeconds": 0, "policies": policies}
    async with running_harness() as harness:
        started = harness.cluster.clock()
        process = await start(harness, minReplicas=0, behavior={"scaleUp": rules, "scaleDown": rules})
        if faults is not None:
            harness.cluster.faults.take_lost_response = faults.take  # type: ignore[method-assign]
        for _ in range(12):
            # Not announced: a reconcile that waits for a response would react to a change later than the other run.
            harness.external_metrics.values["queue"] = (changes.choice([0, 0, 20, 60, 100]) * 1000,)
            await asyncio.sleep(changes.randint(5, 50))
        if faults is not None:
            faults.is_on = False
        await asyncio.sleep(60)
        history = history_of(process)
        rescales = (*history.scale_ups, *history.scale_downs)
        assert history.unknown == ()
        assert harness.status()["lastScaleTime"] == format_rfc3339(max(rescale.at for rescale in rescales))
        entries: tuple[Any, ...] = (*history.recommendations, *rescales)
        relative = [replace(entry, at=round((entry.at - started).total_seconds(), 1)) for entry in entries]
        return relative, harness.replicas(), harness.condition("ScaledToZero"), harness.status()["desiredReplicas"]


@pytest.mark.parametrize("seed", range(8))
async def test_history_is_the_same_as_if_no_response_had_been_lost(seed):
    faults = RandomFaults(random.Random(seed))  # noqa: S311 - reproducible
    with_faults = await run_randomly(seed, faults)
    assert faults.counts.get("update delay")
    assert with_faults == await run_randomly(seed, None)
