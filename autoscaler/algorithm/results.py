"""The possible outcomes of a decision, each with its conditions, status, events and history."""

from collections.abc import Sequence

from msgspec.structs import replace

from autoscaler.algorithm import conditions, fallback
from autoscaler.algorithm.decision_builder import DecisionBuilder
from autoscaler.algorithm.evaluate_metrics import combined_error, first_unavailable
from autoscaler.algorithm.limit import record_rescale
from autoscaler.algorithm.pause import pause_of
from autoscaler.algorithm.propose import UNKNOWN_SOURCE, describe
from autoscaler.algorithm.selection import SelectorProblem
from autoscaler.algorithm.stabilize import StabilizationResult
from autoscaler.algorithm.zero import BELOW_MINIMUM, MoveToBound, is_scale_to_zero
from autoscaler.types import steps
from autoscaler.types.decision import Decision
from autoscaler.types.metric_result import EffectiveResult, FallbackProposal
from autoscaler.types.observation import TargetReadStage, UnavailableTarget
from autoscaler.types.record import Record
from autoscaler.types.spec import DRY_RUN
from autoscaler.types.status import MetricStatus, Status

_TARGET_ERRORS = {
    TargetReadStage.REFERENCE: "invalid API version in scale target reference: {}",
    TargetReadStage.MAPPING: "unable to determine resource for scale target reference: {}",
    TargetReadStage.SCALE: "failed to query scale subresource for {target}: {}",
}


class Outcome(Record):
    """Fields of a decision with their defaults."""

    scale_to: int | None = None
    rescale_reason: str = ""
    error: str | None = None
    failed: bool = False
    caused_by_spec: bool = False


_NO_CHANGE = Outcome()


def target_unavailable(builder: DecisionBuilder, target: UnavailableTarget) -> Decision:
    """Return the decision for a scale that could not be read: only conditions change."""
    builder.set_condition(conditions.target_unavailable(target.message))
    builder.events.append(conditions.warning_event("FailedGetScale", target.message))
    builder.steps.append(steps.TargetUnavailableStep(target.message))
    builder.set_fallback_condition((), conditions.FALLBACK_UNKNOWN_WITHOUT_TARGET)
    previous = builder.autoscaler.status
    metrics = fallback.preserved_metrics(previous, builder.failure_runs)
    status = replace(previous, current_metrics=metrics, conditions=builder.conditions())
    error = _TARGET_ERRORS[target.stage].format(target.message, target=builder.target_name)
    caused_by_spec = target.stage is TargetReadStage.REFERENCE
    outcome = Outcome(error=error, failed=True, caused_by_spec=caused_by_spec)
    return _decision(builder, status, previous.desired_replicas, outcome)


def scaling_disabled(builder: DecisionBuilder) -> Decision:
    """Return the decision for a target with 0 replicas that this autoscaler did not set."""
    builder.set_condition(conditions.SCALING_DISABLED)
    if not builder.gates.HPAScaleToZero:
        builder.remove_condition(conditions.SCALED_TO_ZERO)
    builder.steps.append(steps.ScalingDisabledStep(scale_to_zero_enabled=builder.gates.HPAScaleToZero))
    metrics = fallback.preserved_runs(builder.autoscaler.spec, builder.failure_runs)
    builder.set_fallback_condition(metrics, conditions.FALLBACK_UNKNOWN_WHILE_DISABLED)
    return _decision(builder, _status(builder, 0, metrics), 0)


def moved_to_bound(builder: DecisionBuilder, route: MoveToBound) -> Decision:
    builder.steps.append(steps.OutOfBoundsStep(builder.current, route.replicas))
    metrics = fallback.preserved_runs(builder.autoscaler.spec, builder.failure_runs)
    return _applied(builder, route.replicas, metrics, Outcome(rescale_reason=route.reason))


def invalid_selector(builder: DecisionBuilder, problem: SelectorProblem) -> Decision:
    """Return the decision for a target whose pods cannot be determined."""
    builder.set_condition(problem.condition)
    builder.events.append(problem.event)
    builder.steps.append(steps.InvalidSelectorStep(problem.event.reason, problem.event.message))
    metrics = fallback.preserved_runs(builder.autoscaler.spec, builder.failure_runs)
    return _not_computed(builder, metrics, problem.event.message)


def blocked(
    builder: DecisionBuilder, results: Sequence[EffectiveResult], recommendation: steps.RecommendationStep
) -> Decision:
    """Return the decision if no replica count can be computed, because metrics are missing or unavailable."""
    builder.steps.append(recommendation)
    first = first_unavailable(results)
    if first is None:
        builder.set_condition(conditions.NO_METRICS)
        return _not_computed(builder, None, conditions.NO_METRICS.message, caused_by_spec=True)
    builder.set_condition(conditions.metric_unavailable(first.reason, first.message))
    metrics = tuple(result.status for result in results)
    error = combined_error(first, recommendation)
    return _not_computed(builder, metrics, error, caused_by_spec=first.reason == UNKNOWN_SOURCE)


def computed(
    builder: DecisionBuilder,
    results: Sequence[EffectiveResult],
    recommendation: steps.RecommendationStep,
    stabilized: StabilizationResult,
    limited: steps.LimitStep,
    *,
    minimum: int,
) -> Decision:
    """Return the decision for a computed replica count, which is raised to ``minimum`` after scaling to zero."""
    description, reason = _describe(builder, results, recommendation)
    builder.set_condition(conditions.metrics_valid(description))
    builder.set_condition(conditions.stabilization(stabilized.step))
    builder.set_condition(conditions.LIMITED[limited.limit])
    builder.steps += (recommendation, stabilized.step, limited)
    builder.history = replace(builder.history, recommendations=stabilized.recommendations)
    replicas = limited.replicas
    if replicas < minimum:
        builder.steps.append(steps.ScaleFromZeroStep(replicas, minimum))
        replicas, reason = minimum, reason or BELOW_MINIMUM
    metrics = tuple(result.status for result in results)
    first = first_unavailable(results) if recommendation.unavailable else None
    if first is None:
        return _applied(builder, replicas, metrics, Outcome(rescale_reason=reason))
    error, caused_by_spec = combined_error(first, recommendation), first.reason == UNKNOWN_SOURCE
    outcome = Outcome(rescale_reason=reason, error=error, caused_by_spec=caused_by_spec)
    return _applied(builder, replicas, metrics, outcome)


def _describe(
    builder: DecisionBuilder, results: Sequence[EffectiveResult], recommendation: steps.RecommendationStep
) -> tuple[str, str]:
    """Return the name of the winning metric and the reason of a rescale; like upstream, before limits apply."""
    winner, replicas, current = recommendation.winner or 0, recommendation.replicas, recommendation.current
    description = describe((builder.autoscaler.spec.metrics or ())[winner])
    if isinstance(results[winner], FallbackProposal):
        description = f"the fallback of {description}"
        return description, f"{description} proposes {replicas}" if replicas != current else ""
    if replicas > current:
        return description, f"{description} above target"
    return description, "All metrics below target" if replicas < current else ""


def _applied(
    builder: DecisionBuilder, replicas: int, metrics: tuple[MetricStatus, ...] | None, outcome: Outcome
) -> Decision:
    """Return a decision that scales the target, unless the replicas are unchanged or must not be applied."""
    builder.set_fallback_condition(metrics)
    is_applied = _check_applicable(builder, replicas)
    rescales = is_applied and replicas != builder.current
    if rescales:
        _rescale(builder, replicas, outcome.rescale_reason)
        outcome = replace(outcome, scale_to=replicas)
    if is_applied:
        builder.steps.append(steps.ResultStep(builder.current, replicas))
    return _decision(builder, _status(builder, replicas, metrics, rescaled=rescales), replicas, outcome)


def _rescale(builder: DecisionBuilder, replicas: int, reason: str) -> None:
    spec, current = builder.autoscaler.spec, builder.current
    builder.set_condition(conditions.rescaled(replicas))
    message = f"New size: {replicas}; reason: {reason}"
    builder.events.append(conditions.normal_event("SuccessfulRescale", message))
    builder.history = record_rescale(builder.history, spec.behavior, current, replicas, builder.now)
    if not builder.gates.HPAScaleToZero:
        builder.remove_condition(conditions.SCALED_TO_ZERO)
    elif is_scale_to_zero(spec, current, replicas):
        builder.set_condition(conditions.SCALED_TO_ZERO_TRUE)
    else:
        builder.set_condition(conditions.SCALED_TO_ZERO_FALSE)


def _not_computed(
    builder: DecisionBuilder, metrics: tuple[MetricStatus, ...] | None, problem: str, *, caused_by_spec: bool = False
) -> Decision:
    """Return a decision without a replica count: the target and the desired replicas in the status stay unchanged."""
    builder.set_fallback_condition(metrics)
    _check_applicable(builder, builder.current)
    builder.late_events.append(conditions.warning_event("FailedComputeMetricsReplicas", problem))
    status = _status(builder, builder.autoscaler.status.desired_replicas, metrics)
    error = f"failed to compute desired number of replicas based on listed metrics for {builder.target_name}: {problem}"
    outcome = Outcome(error=error, failed=True, caused_by_spec=caused_by_spec)
    return _decision(builder, status, builder.current, outcome)


def _check_applicable(builder: DecisionBuilder, replicas: int) -> bool:
    """Return whether the decision is applied. If a conflict or the mode prevents that, record it."""
    spec, conflicts, current = builder.autoscaler.spec, builder.observation.conflicts, builder.current
    if conflicts:
        for update in conditions.conflict(conflicts):
            builder.set_condition(update)
        builder.steps.append(
            steps.NotAppliedStep(steps.NotAppliedReason.CONFLICT, replicas, current, conflicts=conflicts)
        )
    elif (pause := pause_of(builder.autoscaler, builder.now)) is not None:
        builder.set_condition(conditions.paused(pause, replicas))
        reason = steps.NotAppliedReason.PAUSED
        step = steps.NotAppliedStep(reason, replicas, current, pause.until, annotation=pause.annotation)
        builder.steps.append(step)
    elif spec.mode == DRY_RUN:
        builder.set_condition(conditions.dry_run(replicas))
        builder.steps.append(steps.NotAppliedStep(steps.NotAppliedReason.DRY_RUN, replicas, current))
    else:
        return True
    return False


def _status(
    builder: DecisionBuilder, desired: int, metrics: tuple[MetricStatus, ...] | None, *, rescaled: bool = False
) -> Status:
    autoscaler = builder.autoscaler
    return Status(
        desired_replicas=desired,
        current_metrics=metrics,
        observed_generation=autoscaler.metadata.generation if builder.gates.HPAGeneration else None,
        last_scale_time=builder.status_time if rescaled else autoscaler.status.last_scale_time,
        current_replicas=builder.current,
        conditions=builder.conditions(),
        state=autoscaler.status.state,
    )


def _decision(builder: DecisionBuilder, status: Status, replicas: int, outcome: Outcome = _NO_CHANGE) -> Decision:
    return Decision(
        at=builder.now,
        replicas=replicas,
        scale_to=outcome.scale_to,
        status=status,
        status_changed=not status.is_equivalent_to(builder.autoscaler.status),
        history=builder.history,
        steps=tuple(builder.steps),
        events=tuple(builder.events),
        late_events=tuple(builder.late_events),
        rescale_reason=outcome.rescale_reason,
        error=outcome.error,
        failed=outcome.failed,
        caused_by_spec=outcome.caused_by_spec,
    )
