"""Derivation of the states of an autoscaler from its last decision, most severe first. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum

from autoscaler.algorithm.formatting import failure_cause
from autoscaler.types import steps
from autoscaler.types.decision import Decision
from autoscaler.types.metric_result import UnavailableCause
from autoscaler.types.record import Record
from autoscaler.types.steps import NotAppliedReason, ScalingLimit, Step
from autoscaler.values.timestamps import format_rfc3339


class State(StrEnum):
    """The states of an autoscaler on the page and in the CLI, in the order of severity, most severe first."""

    RECONCILE_FAILED = "reconcile failed"
    WRITE_FAILED = "write failed"
    TARGET_UNAVAILABLE = "target unavailable"
    INVALID_SPEC = "invalid spec"
    CONFLICT = "conflict"
    INVALID_SELECTOR = "invalid selector"
    FALLBACK = "fallback"
    METRIC_FAILING = "metric failing"
    METRIC_UNAVAILABLE = "metric unavailable"
    PAUSED = "paused"
    DRY_RUN = "dry run"
    SCALING_DISABLED = "scaling disabled"
    LIMITED = "limited"
    SCALED_TO_ZERO = "scaled to zero"
    NORMAL = "normal"


SEVERITY_RANK = {state: rank for rank, state in enumerate(State)}
_NOT_APPLIED = {
    NotAppliedReason.CONFLICT: State.CONFLICT,
    NotAppliedReason.PAUSED: State.PAUSED,
    NotAppliedReason.DRY_RUN: State.DRY_RUN,
}
_WITHOUT_STATE = frozenset(
    {steps.TargetStep, steps.MetricProposalStep, steps.RecommendationStep, steps.StabilizationStep, steps.ResultStep}
)
"""Steps of most decisions that cause no state; checked first, because it is fast."""

_LIMITS = {
    ScalingLimit.MINIMUM: "by minReplicas",
    ScalingLimit.MAXIMUM: "by maxReplicas",
    ScalingLimit.UP_RATE: "by the scale-up rate",
    ScalingLimit.DOWN_RATE: "by the scale-down rate",
}


class DisplayState(Record):
    """A state with its details. ``since`` is None if the decision does not contain the time when the state began."""

    name: State
    detail: str = ""
    since: datetime | None = None
    reason: str = ""
    """The detail in few words, for the column STATE of ``kubectl get``."""

    failing_since: datetime | None = None
    """When the first of the failed reads was; a fallback begins later."""


_NORMAL = (DisplayState(State.NORMAL),)
_SCALED_TO_ZERO = (DisplayState(State.SCALED_TO_ZERO),)


def display_states(decision: Decision) -> tuple[DisplayState, ...]:
    """Return all states of a decision, most severe first; at least one."""
    found = [step for step in decision.steps if type(step) not in _WITHOUT_STATE and not _is_unlimited(step)]
    states = sorted(_states(found), key=lambda state: SEVERITY_RANK[state.name])
    return tuple(states) or (_SCALED_TO_ZERO if decision.replicas == 0 else _NORMAL)


def _is_unlimited(step: Step) -> bool:
    return type(step) is steps.LimitStep and step.limit is ScalingLimit.NONE


def _states(decision_steps: Sequence[Step]) -> Iterator[DisplayState]:
    for step in decision_steps:
        match step:
            case steps.ReconcileFailedStep():
                yield DisplayState(State.RECONCILE_FAILED, step.message)
            case steps.WriteFailedStep():
                yield DisplayState(State.WRITE_FAILED, step.message)
            case steps.TargetUnavailableStep():
                yield DisplayState(State.TARGET_UNAVAILABLE, step.message)
            case steps.InvalidSpecStep():
                yield DisplayState(State.INVALID_SPEC, "; ".join(step.problems))
            case steps.InvalidSelectorStep():
                yield DisplayState(State.INVALID_SELECTOR, step.message)
            case steps.ScalingDisabledStep():
                yield DisplayState(State.SCALING_DISABLED)
            case steps.MetricFallbackStep() | steps.MetricUnavailableStep():
                yield _metric_state(step)
            case steps.NotAppliedStep():
                yield DisplayState(_NOT_APPLIED[step.reason], _not_applied(step))
            case steps.LimitStep(limit=limit):
                yield DisplayState(State.LIMITED, _LIMITS[limit])
            case steps.OutOfBoundsStep():
                bound = "maxReplicas" if step.current > step.replicas else "minReplicas"
                yield DisplayState(State.LIMITED, f"by {bound}")
            case _:
                pass


def _metric_state(step: steps.MetricFallbackStep | steps.MetricUnavailableStep) -> DisplayState:
    detail, failing_since = f"{step.metric}: {failure_cause(step.message)}", step.failing_since
    if isinstance(step, steps.MetricFallbackStep):
        since = step.since or failing_since
        return DisplayState(State.FALLBACK, detail, since, step.failure or "", failing_since)
    is_read_failure = step.cause is UnavailableCause.RETRIEVAL
    state = State.METRIC_FAILING if is_read_failure else State.METRIC_UNAVAILABLE
    return DisplayState(state, detail, failing_since, step.failure or "unavailable", failing_since)


def _not_applied(step: steps.NotAppliedStep) -> str:
    if step.annotation is not None:
        return "annotation" if step.annotation == "true" else 'annotation must be "true" or "false"'
    return f"until {format_rfc3339(step.until)}" if step.until is not None else ", ".join(step.conflicts)
