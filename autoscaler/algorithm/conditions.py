"""All conditions and events of an autoscaler, except the reasons of single metrics. Texts of upstream are unchanged."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from autoscaler.algorithm.formatting import go_duration
from autoscaler.algorithm.pause import Pause
from autoscaler.types.autoscaler import PAUSED_ANNOTATION
from autoscaler.types.decision import Event
from autoscaler.types.record import Record
from autoscaler.types.status import FALSE, TRUE, UNKNOWN
from autoscaler.types.steps import ScalingLimit, StabilizationStep
from autoscaler.values.timestamps import format_rfc3339

ABLE_TO_SCALE: Final = "AbleToScale"
SCALING_ACTIVE: Final = "ScalingActive"
SCALING_LIMITED: Final = "ScalingLimited"
SCALED_TO_ZERO: Final = "ScaledToZero"
FALLBACK_ACTIVE: Final = "ExternalMetricFallbackActive"

FEATURE_DISABLED: Final = "FeatureDisabled"
AMBIGUOUS_TARGET: Final = "AmbiguousTarget"


class ConditionUpdate(Record):
    """The new content of a condition, without its transition time."""

    type: str
    status: str
    reason: str
    message: str


_able_to_scale = partial(ConditionUpdate, ABLE_TO_SCALE)
_scaling_active = partial(ConditionUpdate, SCALING_ACTIVE)
_scaled_to_zero = partial(ConditionUpdate, SCALED_TO_ZERO)
_fallback_active = partial(ConditionUpdate, FALLBACK_ACTIVE)

TARGET_READ: Final = _able_to_scale(
    TRUE, "SucceededGetScale", "the HPA controller was able to get the target's current scale"
)
READY_FOR_NEW_SCALE: Final = _able_to_scale(TRUE, "ReadyForNewScale", "recommended size matches current size")
SCALE_DOWN_STABILIZED: Final = _able_to_scale(
    TRUE,
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
SCALE_UP_STABILIZED: Final = _able_to_scale(
    TRUE,
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
SCALING_DISABLED: Final = _scaling_active(
    FALSE, "ScalingDisabled", "scaling is disabled since the replica count of the target is zero"
)
NO_SELECTOR: Final = _scaling_active(FALSE, "InvalidSelector", "the HPA target's scale is missing a selector")
NO_METRICS: Final = _scaling_active(
    FALSE,
    "NoMetrics",
    "spec.metrics is empty: add at least one metric, or remove the field for the default of cpu at 80 %",
)
LIMITED: Final = {
    limit: ConditionUpdate(SCALING_LIMITED, status, limit.value, message)
    for limit, status, message in (
        (ScalingLimit.NONE, FALSE, "the desired count is within the acceptable range"),
        (ScalingLimit.MINIMUM, TRUE, "the desired replica count is less than the minimum replica count"),
        (ScalingLimit.MAXIMUM, TRUE, "the desired replica count is more than the maximum replica count"),
        (ScalingLimit.UP_RATE, TRUE, "the desired replica count is increasing faster than the maximum scale rate"),
        (ScalingLimit.DOWN_RATE, TRUE, "the desired replica count is decreasing faster than the maximum scale rate"),
    )
}
SCALED_TO_ZERO_TRUE: Final = _scaled_to_zero(TRUE, "ScaledToZero", "the HPA controller scaled the workload to zero")
SCALED_TO_ZERO_FALSE: Final = _scaled_to_zero(
    FALSE, "NotScaledToZero", "the HPA controller did not scale the workload to zero"
)
FALLBACK_UNKNOWN_WITHOUT_TARGET: Final = _fallback_active(
    UNKNOWN, "FailedGetScale", "no metric was read, because the target's scale could not be read"
)
FALLBACK_UNKNOWN_WHILE_DISABLED: Final = _fallback_active(
    UNKNOWN, "ScalingDisabled", "no metric was read, because scaling is disabled"
)
FALLBACK_FEATURE_OFF: Final = _fallback_active(
    UNKNOWN, FEATURE_DISABLED, "the feature gate HPAExternalMetricFallback is off"
)


def spec_invalid(problems: Sequence[str]) -> ConditionUpdate:
    message = f"the spec is invalid and nothing is scaled until it is corrected: {'; '.join(problems)}"
    return _scaling_active(FALSE, "InvalidSpec", message)


def reconcile_failed(error: str) -> ConditionUpdate:
    message = f"the controller failed to reconcile this autoscaler and retries with backoff: {error}"
    return _able_to_scale(FALSE, "ReconcileFailed", message)


def target_unavailable(error: str) -> ConditionUpdate:
    message = f"the HPA controller was unable to get the target's current scale: {error}"
    return _able_to_scale(FALSE, "FailedGetScale", message)


def rescaled(replicas: int) -> ConditionUpdate:
    message = f"the HPA controller was able to update the target scale to {replicas}"
    return _able_to_scale(TRUE, "SucceededRescale", message)


def rescale_failed(error: str) -> ConditionUpdate:
    message = f"the HPA controller was unable to update the target scale: {error}"
    return _able_to_scale(FALSE, "FailedUpdateScale", message)


def rescale_outcome_unknown(replicas: int, error: str) -> ConditionUpdate:
    outcome = f"it is not known whether the target scale was updated to {replicas}: {error}"
    message = f"{outcome}; the scale is read again until the outcome is known"
    return _able_to_scale(UNKNOWN, "RescaleOutcomeUnknown", message)


def metrics_valid(description: str) -> ConditionUpdate:
    message = f"the HPA was able to successfully calculate a replica count from {description}"
    return _scaling_active(TRUE, "ValidMetricFound", message)


def metric_unavailable(reason: str, error: str) -> ConditionUpdate:
    return _scaling_active(FALSE, reason, f"the HPA was unable to compute the replica count: {error}")


def stabilization(step: StabilizationStep) -> ConditionUpdate:
    """Return the condition that names the stabilization window that applied, if any."""
    if step.replicas == step.recommended:
        return READY_FOR_NEW_SCALE
    return SCALE_UP_STABILIZED if step.scale_up else SCALE_DOWN_STABILIZED


def selector_invalid(reason: str, message: str) -> ConditionUpdate:
    return _scaling_active(FALSE, reason, message)


def paused(pause: Pause, replicas: int) -> ConditionUpdate:
    if pause.annotation not in (None, "true"):
        when = f'until the annotation {PAUSED_ANNOTATION} is "true" or "false", is "{pause.annotation}"'
    elif pause.annotation is not None:
        when = f"until the annotation {PAUSED_ANNOTATION} is removed"
    else:
        when = f"until {format_rfc3339(pause.until)}" if pause.until else "until spec.mode is changed"
    return _able_to_scale(FALSE, "Paused", f"scaling is paused {when}; desired replicas: {replicas}")


def dry_run(replicas: int) -> ConditionUpdate:
    return _able_to_scale(FALSE, "DryRun", f"spec.mode is DryRun; desired replicas: {replicas}")


def conflict(conflicts: Sequence[str]) -> tuple[ConditionUpdate, ConditionUpdate]:
    """Return the conditions that name the other autoscalers with the same target."""
    others = ", ".join(conflicts)
    message = (
        f"the target is also scaled by {others}: remove one of them; this PodAutoscaler does not scale it until then"
    )
    return _able_to_scale(FALSE, AMBIGUOUS_TARGET, message), _scaling_active(FALSE, AMBIGUOUS_TARGET, message)


def fallback_active(metrics: Sequence[tuple[str, datetime, int, str | None]]) -> ConditionUpdate:
    """Return the condition that names every metric in fallback, since when, its replicas, and the failure."""
    message = "; ".join(
        f"external metric '{name}' is unreadable since {format_rfc3339(since)},"
        f" using {replicas} replicas{_cause(cause)}"
        for name, since, replicas, cause in metrics
    )
    return _fallback_active(TRUE, "FallbackActive", message)


def fallback_inactive(failing: Sequence[tuple[str, datetime, str | None]]) -> ConditionUpdate:
    """Return the condition for no active fallback, with the metrics that are failing but not yet in fallback."""
    if not failing:
        # Also set by a reconcile that read no metric, hence "known".
        return _fallback_active(FALSE, "NoFailureKnown", "no external metric with a fallback is known to fail")
    message = "; ".join(
        f"external metric '{name}' is unreadable since {format_rfc3339(since)}, not yet in fallback{_cause(cause)}"
        for name, since, cause in failing
    )
    return _fallback_active(FALSE, "FallbackPending", message)


def _cause(message: str | None) -> str:
    return f": {message}" if message else ""


def warning_event(reason: str, message: str) -> Event:
    return Event("Warning", reason, message)


def normal_event(reason: str, message: str) -> Event:
    return Event("Normal", reason, message)


def fallback_activated(metric: str, after: timedelta, replicas: int) -> Event:
    return normal_event(
        "ExternalMetricFallbackActivated",
        f"Fallback activated for external metric '{metric}' after {go_duration(after)} of consecutive failures, "
        f"using fallback replica count: {replicas}",
    )


def fallback_deactivated(metric: str, after: timedelta) -> Event:
    return normal_event(
        "ExternalMetricFallbackDeactivated",
        f"External metric '{metric}' is readable again after {go_duration(after)}; fallback deactivated",
    )


def state_discarded(reason: str) -> Event:
    return warning_event(
        "DiscardedControllerState",
        f"status.controllerState cannot be read; past recommendations and rescales are discarded: {reason}",
    )
