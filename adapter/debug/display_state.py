"""How an autoscaler fares, at a glance: every state that its last decision shows, the gravest first. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum

from autoscaler.types import steps
from autoscaler.types.decision import Decision
from autoscaler.types.metric_result import Trouble
from autoscaler.types.record import Record
from autoscaler.types.steps import Hold, Limit, Step


class State(StrEnum):
    """One thing worth knowing at a glance; in the order in which someone should look at them."""

    WRITE_FAILED = "write failed"
    TARGET_LOST = "target lost"
    SPEC_WRONG = "spec wrong"
    RIVAL = "two owners"
    PODS_UNKNOWN = "pods unknown"
    FALLBACK = "fallback"
    FAILING = "failing"
    NO_SAY = "no say"
    PAUSED = "paused"
    DRY_RUN = "dry run"
    SWITCHED_OFF = "switched off"
    LIMITED = "limited"
    AT_ZERO = "at zero"
    NORMAL = "normal"


GRAVITY = {state: place for place, state in enumerate(State)}
_HOLDS = {Hold.RIVAL: State.RIVAL, Hold.PAUSED: State.PAUSED, Hold.DRY_RUN: State.DRY_RUN}
_LIMITS = {
    Limit.MINIMUM: "by minReplicas",
    Limit.MAXIMUM: "by maxReplicas",
    Limit.UP_RATE: "by the rate of scaling up",
    Limit.DOWN_RATE: "by the rate of scaling down",
}


class Sign(Record):
    """A state, what it is about, and since when where the decision itself knows."""

    state: State
    note: str = ""
    since: datetime | None = None


def signs_of(decision: Decision) -> tuple[Sign, ...]:
    """Tell every state that a decision shows, the gravest first; at least that all is normal."""
    found = sorted(_signs(decision.working), key=lambda sign: GRAVITY[sign.state])
    if not found and decision.replicas == 0:
        return (Sign(State.AT_ZERO),)
    return tuple(found) or (Sign(State.NORMAL),)


def _signs(working: Sequence[Step]) -> Iterator[Sign]:
    for step in working:
        sign = _sign(step)
        if sign is not None:
            yield sign


def _sign(step: Step) -> Sign | None:
    match step:
        case steps.MetricAnswered() | steps.TargetSeen() | steps.Combined() | steps.Stabilized() | steps.Woken():
            return None
        case steps.WriteFailed():
            return Sign(State.WRITE_FAILED, step.message)
        case steps.TargetNotSeen():
            return Sign(State.TARGET_LOST, step.message)
        case steps.SpecRefused():
            return Sign(State.SPEC_WRONG, "; ".join(step.problems))
        case steps.SelectorRefused():
            return Sign(State.PODS_UNKNOWN, step.message)
        case steps.SwitchedOff():
            return Sign(State.SWITCHED_OFF)
        case steps.MetricFellBack():
            return Sign(State.FALLBACK, step.metric, step.failing_since)
        case _:
            return _sign_of_limits(step)


def _sign_of_limits(step: Step) -> Sign | None:
    match step:
        case steps.MetricFailed(trouble=Trouble.RETRIEVAL):
            return Sign(State.FAILING, step.metric, step.failing_since)
        case steps.MetricFailed():
            return Sign(State.NO_SAY, step.metric, step.failing_since)
        case steps.Held():
            return Sign(_HOLDS[step.hold], ", ".join(step.rivals))
        case steps.Limited(limit=limit) if limit is not Limit.NONE:
            return Sign(State.LIMITED, _LIMITS[limit])
        case steps.OutOfBounds():
            return Sign(State.LIMITED, "by maxReplicas" if step.current > step.replicas else "by minReplicas")
        case _:
            return None
