"""Derive from a decision's steps which constraint determined the result, and when the result can change by itself."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from autoscaler.types import steps
from autoscaler.types.metric_result import CalculationRule
from autoscaler.types.steps import Step


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
    RECONCILE_FAILED = "failed reconcile"
    SCALING_DISABLED = "scaling disabled: the target has 0 replicas"
    CONFLICT = "conflict: another autoscaler scales the target"
    PAUSED = "paused"
    DRY_RUN = "dry run"
    WRITE_FAILED = "failed write of the scale"


_NOT_APPLIED: Final = {
    steps.NotAppliedReason.CONFLICT: LimitingFactor.CONFLICT,
    steps.NotAppliedReason.PAUSED: LimitingFactor.PAUSED,
    steps.NotAppliedReason.DRY_RUN: LimitingFactor.DRY_RUN,
}
_FINAL_STEPS: Final[Mapping[type[Step], LimitingFactor]] = {
    steps.InvalidSelectorStep: LimitingFactor.INVALID_SELECTOR,
    steps.InvalidSpecStep: LimitingFactor.INVALID_SPEC,
    steps.ReconcileFailedStep: LimitingFactor.RECONCILE_FAILED,
    steps.ScalingDisabledStep: LimitingFactor.SCALING_DISABLED,
    steps.TargetUnavailableStep: LimitingFactor.TARGET_UNAVAILABLE,
}
_WITHOUT_FACTOR: Final = frozenset({steps.TargetStep, steps.MetricProposalStep, steps.ResultStep})
"""Steps of most decisions that never determine the factor by themselves; checked first, because it is fast."""

_NO_LIMIT: Final = steps.ScalingLimit.NONE
_METRIC_STEPS: Final = (steps.MetricProposalStep, steps.MetricUnavailableStep, steps.MetricFallbackStep)
_LIMITS: Final = {
    steps.ScalingLimit.MINIMUM: LimitingFactor.MIN_REPLICAS,
    steps.ScalingLimit.MAXIMUM: LimitingFactor.MAX_REPLICAS,
    steps.ScalingLimit.DOWN_RATE: LimitingFactor.SCALE_DOWN_POLICY,
}


def limiting_factor(all_steps: Sequence[Step]) -> LimitingFactor:
    """Return the factor of the last step that changed the result."""
    for step in reversed(all_steps):
        is_inert = type(step) in _WITHOUT_FACTOR or (type(step) is steps.LimitStep and step.limit is _NO_LIMIT)
        if not is_inert and (factor := _factor_of(step, all_steps)) is not None:
            return factor
    return LimitingFactor.NONE


def decisive_step_index(all_steps: Sequence[Step]) -> int | None:
    """Return the index of the step that the limiting factor names: of a metric, if the factor is about a metric."""
    decisive = next((step for step in reversed(all_steps) if _factor_of(step, all_steps) is not None), None)
    if isinstance(decisive, steps.RecommendationStep):
        unavailable = (step for step in all_steps if isinstance(step, steps.MetricUnavailableStep))
        metric = next(unavailable, None) if decisive.blocked else winning_step(decisive, all_steps)
        decisive = metric or decisive
    return next((index for index, step in enumerate(all_steps) if step is decisive), None)


def _factor_of(step: Step, all_steps: Sequence[Step]) -> LimitingFactor | None:  # noqa: PLR0911 - one case per step type
    match step:  # the most frequent steps first: each case is an instance check
        case steps.StabilizationStep() if step.replicas != step.recommended:
            return LimitingFactor.STABILIZATION_WINDOW
        case steps.RecommendationStep():
            return LimitingFactor.METRICS_UNAVAILABLE if step.blocked else _factor_of_winner(step, all_steps)
        case steps.WriteFailedStep():
            return LimitingFactor.WRITE_FAILED
        case steps.NotAppliedStep(reason=reason):
            return _NOT_APPLIED[reason]
        case steps.LimitStep(limit=steps.ScalingLimit.UP_RATE):
            return LimitingFactor.DEFAULT_SCALE_UP_RATE if step.fixed_rate else LimitingFactor.SCALE_UP_POLICY
        case steps.LimitStep(limit=limit) if limit is not steps.ScalingLimit.NONE:
            return _LIMITS[limit]
        case steps.ScaleFromZeroStep():
            return LimitingFactor.MIN_REPLICAS
        case steps.OutOfBoundsStep():
            return LimitingFactor.MAX_REPLICAS if step.current > step.replicas else LimitingFactor.MIN_REPLICAS
        case _:
            return _FINAL_STEPS.get(type(step))


def _factor_of_winner(recommendation: steps.RecommendationStep, all_steps: Sequence[Step]) -> LimitingFactor:
    """Return the factor where no window or limit applied: tolerance, fallback, or none."""
    winner = winning_step(recommendation, all_steps)
    if isinstance(winner, steps.MetricFallbackStep):
        return LimitingFactor.FALLBACK
    if isinstance(winner, steps.MetricProposalStep) and winner.calculation.rule is CalculationRule.WITHIN_TOLERANCE:
        return LimitingFactor.TOLERANCE
    return LimitingFactor.NONE


def winning_step(recommendation: steps.RecommendationStep, all_steps: Sequence[Step]) -> Step | None:
    """Return the step of the metric with the highest proposal. Each metric has one step, in the order of the spec."""
    if recommendation.winner is None:
        return None
    metrics = [step for step in all_steps if isinstance(step, _METRIC_STEPS)]
    return metrics[recommendation.winner]


def next_change(all_steps: Sequence[Step], now: datetime) -> datetime | None:
    """Return the earliest time at which a window, policy, failure duration or pause expires."""
    return min((expiry for expiry in _expiries(all_steps) if expiry > now), default=None)


def _expiries(all_steps: Sequence[Step]) -> Iterator[datetime]:
    for step in all_steps:
        match step:
            case steps.StabilizationStep(held_by=held_by) if held_by is not None:
                yield held_by.at + step.window
            case steps.LimitStep(until=datetime() as until) | steps.NotAppliedStep(until=datetime() as until):
                yield until
            case steps.MetricUnavailableStep(fallback_at=datetime() as due):
                yield due
            case _:
                pass
