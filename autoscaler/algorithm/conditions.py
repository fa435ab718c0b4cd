"""Every condition and event of an autoscaler, in Kubernetes' words; a metric's own reasons stand beside the metric."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from autoscaler.types.decision import Event
from autoscaler.types.record import Record
from autoscaler.types.status import FALSE, TRUE, UNKNOWN
from autoscaler.types.steps import Limit, Stabilized

ABLE_TO_SCALE: Final = "AbleToScale"
SCALING_ACTIVE: Final = "ScalingActive"
SCALING_LIMITED: Final = "ScalingLimited"
SCALED_TO_ZERO: Final = "ScaledToZero"
FALLBACK_ACTIVE: Final = "ExternalMetricFallbackActive"

FEATURE_DISABLED: Final = "FeatureDisabled"


class Finding(Record):
    """What a condition should say now."""

    type: str
    status: str
    reason: str
    message: str


TARGET_READ: Final = Finding(
    ABLE_TO_SCALE, TRUE, "SucceededGetScale", "the HPA controller was able to get the target's current scale"
)
STEADY: Final = Finding(ABLE_TO_SCALE, TRUE, "ReadyForNewScale", "recommended size matches current size")
HELD_UP: Final = Finding(
    ABLE_TO_SCALE,
    TRUE,
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
HELD_DOWN: Final = Finding(
    ABLE_TO_SCALE,
    TRUE,
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)

SWITCHED_OFF: Final = Finding(
    SCALING_ACTIVE, FALSE, "ScalingDisabled", "scaling is disabled since the replica count of the target is zero"
)
NO_SELECTOR: Final = Finding(SCALING_ACTIVE, FALSE, "InvalidSelector", "the HPA target's scale is missing a selector")
NO_METRICS: Final = Finding(
    SCALING_ACTIVE,
    FALSE,
    "NoMetrics",
    "spec.metrics is empty: name at least one metric, or leave it out for cpu at 80 %",
)

LIMITED: Final = {
    Limit.NONE: Finding(SCALING_LIMITED, FALSE, Limit.NONE.value, "the desired count is within the acceptable range"),
    Limit.MINIMUM: Finding(
        SCALING_LIMITED, TRUE, Limit.MINIMUM.value, "the desired replica count is less than the minimum replica count"
    ),
    Limit.MAXIMUM: Finding(
        SCALING_LIMITED, TRUE, Limit.MAXIMUM.value, "the desired replica count is more than the maximum replica count"
    ),
    Limit.UP_RATE: Finding(
        SCALING_LIMITED,
        TRUE,
        Limit.UP_RATE.value,
        "the desired replica count is increasing faster than the maximum scale rate",
    ),
    Limit.DOWN_RATE: Finding(
        SCALING_LIMITED,
        TRUE,
        Limit.DOWN_RATE.value,
        "the desired replica count is decreasing faster than the maximum scale rate",
    ),
}

WENT_TO_ZERO: Final = Finding(SCALED_TO_ZERO, TRUE, "ScaledToZero", "the HPA controller scaled the workload to zero")
NOT_AT_ZERO: Final = Finding(
    SCALED_TO_ZERO, FALSE, "NotScaledToZero", "the HPA controller did not scale the workload to zero"
)

FALLBACK_UNKNOWN_TARGET: Final = Finding(
    FALLBACK_ACTIVE, UNKNOWN, "FailedGetScale", "no metric was read, because the target's scale could not be read"
)
FALLBACK_UNKNOWN_DISABLED: Final = Finding(
    FALLBACK_ACTIVE, UNKNOWN, "ScalingDisabled", "no metric was read, because scaling is disabled"
)
FALLBACK_FEATURE_OFF: Final = Finding(
    FALLBACK_ACTIVE, UNKNOWN, FEATURE_DISABLED, "the feature gate HPAExternalMetricFallback is off"
)


def spec_invalid(problems: Sequence[str]) -> Finding:
    """Say what is wrong with the spec, field by field."""
    return Finding(
        SCALING_ACTIVE, FALSE, "InvalidSpec", f"nothing is scaled until this is corrected: {'; '.join(problems)}"
    )


def target_not_read(error: str) -> Finding:
    """Say that the scale could not be read."""
    return Finding(
        ABLE_TO_SCALE,
        FALSE,
        "FailedGetScale",
        f"the HPA controller was unable to get the target's current scale: {error}",
    )


def rescaled(replicas: int) -> Finding:
    """Say that the scale was written."""
    return Finding(
        ABLE_TO_SCALE,
        TRUE,
        "SucceededRescale",
        f"the HPA controller was able to update the target scale to {replicas}",
    )


def not_rescaled(error: str) -> Finding:
    """Say that the scale could not be written."""
    return Finding(
        ABLE_TO_SCALE,
        FALSE,
        "FailedUpdateScale",
        f"the HPA controller was unable to update the target scale: {error}",
    )


def metrics_valid(description: str) -> Finding:
    """Say which metric decided."""
    return Finding(
        SCALING_ACTIVE,
        TRUE,
        "ValidMetricFound",
        f"the HPA was able to successfully calculate a replica count from {description}",
    )


def metric_failed(reason: str, error: str) -> Finding:
    """Say which metric stands in the way."""
    return Finding(SCALING_ACTIVE, FALSE, reason, f"the HPA was unable to compute the replica count: {error}")


def stability(stabilized: Stabilized) -> Finding:
    """Say whether the window made a difference, and which way."""
    if stabilized.replicas == stabilized.wanted:
        return STEADY
    return HELD_DOWN if stabilized.held_down else HELD_UP


def selector_refused(reason: str, message: str) -> Finding:
    """Say what is wrong with the target's selector."""
    return Finding(SCALING_ACTIVE, FALSE, reason, message)


def paused(until: datetime | None, wanted: int) -> Finding:
    """Say that the decision is not carried out, and until when."""
    when = f"until {stamp(until)}" if until else "until spec.mode is changed"
    return Finding(ABLE_TO_SCALE, FALSE, "Paused", f"scaling is paused {when}; it would be {wanted} replicas")


def dry_run(wanted: int) -> Finding:
    """Say that the decision is never carried out."""
    return Finding(ABLE_TO_SCALE, FALSE, "DryRun", f"spec.mode is DryRun; it would be {wanted} replicas")


def has_rivals(rivals: Sequence[str]) -> Finding:
    """Say who else owns the target."""
    return Finding(
        ABLE_TO_SCALE,
        FALSE,
        "AmbiguousTarget",
        f"the target is also scaled by {', '.join(rivals)}: remove one of them; nothing is scaled until then",
    )


def fallback_active(metrics: Sequence[tuple[str, datetime, int]]) -> Finding:
    """Name every metric in fallback, since when, and its replicas."""
    told = "; ".join(
        f"external metric '{name}' is unreadable since {stamp(since)}, using {replicas} replicas"
        for name, since, replicas in metrics
    )
    return Finding(FALLBACK_ACTIVE, TRUE, "FallbackActive", told)


def fallback_inactive(failing: Sequence[tuple[str, datetime]]) -> Finding:
    """Say that no fallback is in use, and name the metrics whose clocks are running."""
    if not failing:
        # Also said in a pass that read nothing, so it claims no more than that no failure is known.
        return Finding(FALLBACK_ACTIVE, FALSE, "NoFailureKnown", "no external metric with a fallback is known to fail")
    told = "; ".join(
        f"external metric '{name}' is unreadable since {stamp(since)}, not yet in fallback" for name, since in failing
    )
    return Finding(FALLBACK_ACTIVE, FALSE, "FailureClockRunning", told)


def warning(reason: str, message: str) -> Event:
    """Make an event that someone should look at."""
    return Event("Warning", reason, message)


def notice(reason: str, message: str) -> Event:
    """Make an event that is good to know."""
    return Event("Normal", reason, message)


def fallback_activated(metric: str, after: timedelta, replicas: int) -> Event:
    """Tell, once, that a fallback takes over."""
    return notice(
        "ExternalMetricFallbackActivated",
        f"Fallback activated for external metric '{metric}' after {spell(after)} of consecutive failures, "
        f"using fallback replica count: {replicas}",
    )


def fallback_deactivated(metric: str, after: timedelta) -> Event:
    """Tell, once, that a metric is back."""
    return notice(
        "ExternalMetricFallbackDeactivated",
        f"External metric '{metric}' is readable again after {spell(after)}; fallback deactivated",
    )


def stamp(moment: datetime) -> str:
    """Write a moment as Kubernetes does."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def spell(duration: timedelta) -> str:
    """Write a duration as Go does: 45s, 3m0s, 1h0m5s."""
    minutes, seconds = divmod(max(int(duration.total_seconds()), 0), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
