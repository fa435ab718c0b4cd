"""Derive from a decision's steps which constraint determined the result, and when the result can change by itself."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from autoscaler.types.metric_result import CalculationRule
from autoscaler.types.steps import (
    InvalidSelectorStep,
    InvalidSpecStep,
    LimitStep,
    MetricFallbackStep,
    MetricProposalStep,
    MetricUnavailableStep,
    NotAppliedReason,
    NotAppliedStep,
    OutOfBoundsStep,
    RecommendationStep,
    ScaleFromZeroStep,
    ScalingDisabledStep,
    ScalingLimit,
    StabilizationStep,
    Step,
    TargetUnavailableStep,
    WriteFailedStep,
)


class LimitingFactor(StrEnum):
    """The constraint that determined the result of a decision."""

    NONE = "none"
    TOLERANCE = "tolerance"
    FALLBACK = "metric fallback"
    STABILIZATION_WINDOW = "stabilization window"
    SCALE_UP_POLICY = "scaleUp policies"
    SCALE_DOWN_POLICY = "scaleDown policies"
    DEFAULT_SCALE_UP_RATE = "default scale-up rate (double, or 4 replicas)"
    MIN_REPLICAS = "minReplicas"
    MAX_REPLICAS = "maxReplicas"
    METRICS_UNAVAILABLE = "unavailable metrics"
    INVALID_SELECTOR = "invalid selector of the target"
    TARGET_UNAVAILABLE = "unavailable target"
    INVALID_SPEC = "invalid spec"
    SCALING_DISABLED = "scaling disabled: the target has 0 replicas"
    CONFLICT = "conflict: another autoscaler scales the target"
    PAUSED = "mode: Paused"
    DRY_RUN = "mode: DryRun"
    WRITE_FAILED = "failed write of the scale"


_NOT_APPLIED: Final = {
    NotAppliedReason.CONFLICT: LimitingFactor.CONFLICT,
    NotAppliedReason.PAUSED: LimitingFactor.PAUSED,
    NotAppliedReason.DRY_RUN: LimitingFactor.DRY_RUN,
}
_FINAL_STEPS: Final[Mapping[type[Step], LimitingFactor]] = {
    InvalidSelectorStep: LimitingFactor.INVALID_SELECTOR,
    InvalidSpecStep: LimitingFactor.INVALID_SPEC,
    ScalingDisabledStep: LimitingFactor.SCALING_DISABLED,
    TargetUnavailableStep: LimitingFactor.TARGET_UNAVAILABLE,
}
_LIMITS: Final = {
    ScalingLimit.MINIMUM: LimitingFactor.MIN_REPLICAS,
    ScalingLimit.MAXIMUM: LimitingFactor.MAX_REPLICAS,
    ScalingLimit.DOWN_RATE: LimitingFactor.SCALE_DOWN_POLICY,
}


def limiting_factor(steps: Sequence[Step]) -> LimitingFactor:
    """Return the factor of the last step that changed the result."""
    factors = (_factor_of(step, steps) for step in reversed(steps))
    return next((factor for factor in factors if factor is not None), LimitingFactor.NONE)


def decisive_step_index(steps: Sequence[Step]) -> int | None:
    """Return the index of the step that ``limiting_factor`` is derived from."""
    indices = reversed(range(len(steps)))
    return next((index for index in indices if _factor_of(steps[index], steps) is not None), None)


def _factor_of(step: Step, steps: Sequence[Step]) -> LimitingFactor | None:  # noqa: PLR0911 - one case per step type
    match step:
        case WriteFailedStep():
            return LimitingFactor.WRITE_FAILED
        case NotAppliedStep(reason=reason):
            return _NOT_APPLIED[reason]
        case LimitStep(limit=ScalingLimit.UP_RATE):
            return LimitingFactor.DEFAULT_SCALE_UP_RATE if step.fixed_rate else LimitingFactor.SCALE_UP_POLICY
        case LimitStep(limit=limit) if limit is not ScalingLimit.NONE:
            return _LIMITS[limit]
        case StabilizationStep() if step.replicas != step.recommended:
            return LimitingFactor.STABILIZATION_WINDOW
        case RecommendationStep():
            return LimitingFactor.METRICS_UNAVAILABLE if step.blocked else _factor_of_winner(step, steps)
        case ScaleFromZeroStep():
            return LimitingFactor.MIN_REPLICAS
        case OutOfBoundsStep():
            return LimitingFactor.MAX_REPLICAS if step.current > step.replicas else LimitingFactor.MIN_REPLICAS
        case _:
            return _FINAL_STEPS.get(type(step))


def _factor_of_winner(recommendation: RecommendationStep, steps: Sequence[Step]) -> LimitingFactor:
    """Return the factor where no window or limit applied: tolerance, fallback, or none."""
    winner = winning_step(recommendation, steps)
    if isinstance(winner, MetricFallbackStep):
        return LimitingFactor.FALLBACK
    if isinstance(winner, MetricProposalStep) and winner.calculation.rule is CalculationRule.WITHIN_TOLERANCE:
        return LimitingFactor.TOLERANCE
    return LimitingFactor.NONE


def winning_step(recommendation: RecommendationStep, steps: Sequence[Step]) -> Step | None:
    """Return the step of the metric with the highest proposal. Each metric has one step, in the order of the spec."""
    if recommendation.winner is None:
        return None
    metrics = [
        step for step in steps if isinstance(step, MetricProposalStep | MetricUnavailableStep | MetricFallbackStep)
    ]
    return metrics[recommendation.winner]


def next_change(steps: Sequence[Step], now: datetime) -> datetime | None:
    """Return the earliest time at which a window, policy, failure duration or pause expires."""
    return min((expiry for expiry in _expiries(steps) if expiry > now), default=None)


def _expiries(steps: Sequence[Step]) -> Iterator[datetime]:
    for step in steps:
        match step:
            case StabilizationStep(held_by=held_by) if held_by is not None:
                yield held_by.at + step.window
            case LimitStep(until=datetime() as until) | NotAppliedStep(until=datetime() as until):
                yield until
            case MetricUnavailableStep(fallback_at=datetime() as due):
                yield due
            case _:
                pass
