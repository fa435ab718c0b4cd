"""Reads the working backwards: which constraint decided, and when the answer may change by itself."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from autoscaler.types.metric_result import Rule
from autoscaler.types.steps import (
    Combined,
    Held,
    Hold,
    Limit,
    Limited,
    MetricAnswered,
    MetricFailed,
    MetricFellBack,
    OutOfBounds,
    SelectorRefused,
    SpecRefused,
    Stabilized,
    Step,
    SwitchedOff,
    TargetNotSeen,
    Woken,
    WriteFailed,
)


class Bound(StrEnum):
    """The one constraint that decided, when it was not simply what the metrics ask for."""

    NOTHING = "nothing: this is what the metrics ask for"
    TOLERANCE = "the tolerance"
    FALLBACK = "the fallback of an unreadable metric"
    WINDOW = "the stabilization window"
    UP_POLICY = "the scale-up policies"
    DOWN_POLICY = "the scale-down policies"
    DOUBLING = "the fixed rate: at most double, or four"
    MINIMUM = "minReplicas"
    MAXIMUM = "maxReplicas"
    UNREADABLE_METRICS = "metrics that have no say"
    SELECTOR = "the target's selector"
    TARGET = "the target, which cannot be read"
    SPEC = "the spec, which is wrong"
    SWITCHED_OFF = "the target's replica count of zero, set by someone else"
    RIVAL = "another owner of the target"
    PAUSED = "mode: Paused"
    DRY_RUN = "mode: DryRun"
    WRITE = "the write to the target, which failed"


_HOLDS = {Hold.RIVAL: Bound.RIVAL, Hold.PAUSED: Bound.PAUSED, Hold.DRY_RUN: Bound.DRY_RUN}
_ENDS: Final[Mapping[type[Step], Bound]] = {
    SelectorRefused: Bound.SELECTOR,
    SpecRefused: Bound.SPEC,
    SwitchedOff: Bound.SWITCHED_OFF,
    TargetNotSeen: Bound.TARGET,
}
_LIMITS = {Limit.MINIMUM: Bound.MINIMUM, Limit.MAXIMUM: Bound.MAXIMUM, Limit.DOWN_RATE: Bound.DOWN_POLICY}


def bound_by(working: Sequence[Step]) -> Bound:
    """Name the constraint that decided: the last step that changed the answer."""
    for step in reversed(working):
        bound = _bound_of(step, working)
        if bound is not None:
            return bound
    return Bound.NOTHING


def decisive_step(working: Sequence[Step]) -> int | None:
    """Find the place of the step that decided, the one that ``bound_by`` names."""
    return next((at for at in reversed(range(len(working))) if _bound_of(working[at], working) is not None), None)


def _bound_of(step: Step, working: Sequence[Step]) -> Bound | None:  # noqa: PLR0911 - one line for each kind of step
    match step:
        case WriteFailed():
            return Bound.WRITE
        case Held(hold=hold):
            return _HOLDS[hold]
        case Limited(limit=Limit.UP_RATE):
            return Bound.DOUBLING if step.fixed_rate else Bound.UP_POLICY
        case Limited(limit=limit) if limit is not Limit.NONE:
            return _LIMITS[limit]
        case Stabilized() if step.replicas != step.wanted:
            return Bound.WINDOW
        case Combined():
            return Bound.UNREADABLE_METRICS if step.blocked else _bound_of_winner(step, working)
        case Woken():
            return Bound.MINIMUM
        case OutOfBounds():
            return Bound.MAXIMUM if step.current > step.replicas else Bound.MINIMUM
        case _:
            return _ENDS.get(type(step))


def _bound_of_winner(combined: Combined, working: Sequence[Step]) -> Bound:
    """Tell what decided where neither window nor limit did: the tolerance, a fallback, or the metric itself."""
    decisive = winning_step(combined, working)
    if isinstance(decisive, MetricFellBack):
        return Bound.FALLBACK
    if isinstance(decisive, MetricAnswered) and decisive.calculation.rule is Rule.WITHIN_TOLERANCE:
        return Bound.TOLERANCE
    return Bound.NOTHING


def winning_step(combined: Combined, working: Sequence[Step]) -> Step | None:
    """Find the step of the metric that decided; every metric has one step, in the order of the spec."""
    if combined.winner is None:
        return None
    metrics = [step for step in working if isinstance(step, MetricAnswered | MetricFailed | MetricFellBack)]
    return metrics[combined.winner]


def next_change(working: Sequence[Step], now: datetime) -> datetime | None:
    """Find the first moment at which a window, a policy, a clock or a pause lets go."""
    return min((moment for moment in _moments(working) if moment > now), default=None)


def _moments(working: Sequence[Step]) -> Iterator[datetime]:
    for step in working:
        match step:
            case Stabilized(held_by=held_by) if held_by is not None:
                yield held_by.at + step.window
            case Limited(until=datetime() as until) | Held(until=datetime() as until):
                yield until
            case MetricFailed(fallback_at=datetime() as due):
                yield due
            case _:
                pass
