"""The ends a pass can come to, each with its status, events and history."""

from collections.abc import Sequence

from msgspec.structs import replace

from autoscaler.algorithm import conditions, fallback
from autoscaler.algorithm.combine import combined_error, first_failure
from autoscaler.algorithm.conditions import Finding
from autoscaler.algorithm.decision_builder import Draft
from autoscaler.algorithm.limit import remember_rescale
from autoscaler.algorithm.propose import UNKNOWN_SOURCE, describe
from autoscaler.algorithm.selection import Refusal
from autoscaler.algorithm.stabilize import Steadied
from autoscaler.algorithm.zero import BELOW, ToBound, arrives_at_zero
from autoscaler.types.decision import Decision
from autoscaler.types.metric_result import Substitute, Verdict
from autoscaler.types.observation import Hop, TargetUnreadable
from autoscaler.types.record import Record
from autoscaler.types.spec import DRY_RUN, PAUSED
from autoscaler.types.status import MetricStatus, Status
from autoscaler.types.steps import (
    Combined,
    Concluded,
    Held,
    Hold,
    Limited,
    OutOfBounds,
    SelectorRefused,
    SwitchedOff,
    TargetNotSeen,
    Woken,
)

_LOST = {
    Hop.REFERENCE: "invalid API version in scale target reference: {}",
    Hop.MAPPING: "unable to determine resource for scale target reference: {}",
    Hop.SCALE: "failed to query scale subresource for {reference}: {}",
}


class Ending(Record):
    """What a pass ends with besides its status."""

    scale_to: int | None = None
    rescale_reason: str = ""
    error: str | None = None
    failed: bool = False
    blames_spec: bool = False


_UNEVENTFUL = Ending()


def without_target(draft: Draft, lost: TargetUnreadable) -> Decision:
    """End where the scale could not be read: only conditions change."""
    draft.find(conditions.target_not_read(lost.message))
    draft.events.append(conditions.warning("FailedGetScale", lost.message))
    draft.working.append(TargetNotSeen(lost.message))
    _settle_fallback(draft, (), conditions.FALLBACK_UNKNOWN_TARGET)
    previous = draft.autoscaler.status
    shown = fallback.kept(previous, draft.clocks)
    status = replace(previous, current_metrics=shown, conditions=draft.conditions())
    error = _LOST[lost.hop].format(lost.message, reference=draft.reference)
    ending = Ending(error=error, failed=True, blames_spec=lost.hop is Hop.REFERENCE)
    return _decision(draft, status, previous.desired_replicas, ending)


def switched_off(draft: Draft) -> Decision:
    """End at a zero that someone else set: leave it."""
    draft.find(conditions.SWITCHED_OFF)
    if not draft.gates.HPAScaleToZero:
        draft.drop(conditions.SCALED_TO_ZERO)
    draft.working.append(SwitchedOff(scaling_to_zero=draft.gates.HPAScaleToZero))
    slots = fallback.carried(draft.autoscaler.spec, draft.clocks)
    _settle_fallback(draft, slots, conditions.FALLBACK_UNKNOWN_DISABLED)
    return _decision(draft, _status(draft, 0, slots), 0)


def at_bound(draft: Draft, route: ToBound) -> Decision:
    """End at the bound that the target was outside of."""
    draft.working.append(OutOfBounds(draft.current, route.replicas))
    slots = fallback.carried(draft.autoscaler.spec, draft.clocks)
    return _carried_out(draft, route.replicas, slots, Ending(rescale_reason=route.reason))


def without_pods(draft: Draft, refusal: Refusal) -> Decision:
    """End where the target's pods cannot be told."""
    draft.find(refusal.finding)
    draft.events.append(refusal.event)
    draft.working.append(SelectorRefused(refusal.event.reason, refusal.message))
    return _stuck(draft, fallback.carried(draft.autoscaler.spec, draft.clocks), refusal.message)


def blocked(draft: Draft, verdicts: Sequence[Verdict], combined: Combined) -> Decision:
    """End where too little is known to move."""
    draft.working.append(combined)
    failure = first_failure(verdicts)
    if failure is None:
        draft.find(conditions.NO_METRICS)
        return _stuck(draft, None, conditions.NO_METRICS.message, blames_spec=True)
    draft.find(conditions.metric_failed(failure.reason, failure.message))
    slots = tuple(verdict.status for verdict in verdicts)
    return _stuck(draft, slots, combined_error(failure, combined), blames_spec=failure.reason == UNKNOWN_SOURCE)


def computed(
    draft: Draft, verdicts: Sequence[Verdict], combined: Combined, steadied: Steadied, limited: Limited, *, floor: int
) -> Decision:
    """End with what the metrics ask for, as far as windows, rates and bounds allow."""
    steady = steadied.step
    description, reason = _describe(draft, verdicts, combined)
    draft.find(conditions.metrics_valid(description))
    draft.find(conditions.stability(steady))
    draft.find(conditions.LIMITED[limited.limit])
    draft.working += (combined, steady, limited)
    draft.past = replace(draft.past, recommendations=steadied.remembered)
    replicas = limited.replicas
    if replicas < floor:
        draft.working.append(Woken(replicas, floor))
        replicas, reason = floor, reason or BELOW
    slots = tuple(verdict.status for verdict in verdicts)
    failure = first_failure(verdicts) if combined.failed else None
    if failure is None:
        return _carried_out(draft, replicas, slots, Ending(rescale_reason=reason))
    ending = Ending(
        rescale_reason=reason,
        error=combined_error(failure, combined),
        blames_spec=failure.reason == UNKNOWN_SOURCE,
    )
    return _carried_out(draft, replicas, slots, ending)


def _describe(draft: Draft, verdicts: Sequence[Verdict], combined: Combined) -> tuple[str, str]:
    """Name the metric that decided, and give the reason for a rescale; upstream does so before any limit applies."""
    winner = combined.winner or 0
    description = describe((draft.autoscaler.spec.metrics or ())[winner])
    if isinstance(verdicts[winner], Substitute):
        description = f"the fallback of {description}"
        return (
            description,
            f"{description} asks for {combined.replicas}" if combined.replicas != combined.current else "",
        )
    if combined.replicas > combined.current:
        return description, f"{description} above target"
    return description, "All metrics below target" if combined.replicas < combined.current else ""


def _carried_out(draft: Draft, replicas: int, slots: tuple[MetricStatus, ...] | None, ending: Ending) -> Decision:
    """Conclude with a size: write it if it is new, unless something holds the decision back."""
    _settle_fallback(draft, slots)
    held = _hold(draft, replicas)
    rescales = replicas != draft.current and not held
    if rescales:
        _rescale(draft, replicas, ending.rescale_reason)
        ending = replace(ending, scale_to=replicas)
    if not held:
        draft.working.append(Concluded(draft.current, replicas))
    return _decision(draft, _status(draft, replicas, slots, rescaled=rescales), replicas, ending)


def _rescale(draft: Draft, replicas: int, reason: str) -> None:
    """Say and remember that the scale is written."""
    spec, current = draft.autoscaler.spec, draft.current
    draft.find(conditions.rescaled(replicas))
    draft.events.append(conditions.notice("SuccessfulRescale", f"New size: {replicas}; reason: {reason}"))
    draft.past = remember_rescale(draft.past, spec.behavior, current, replicas, draft.now)
    if not draft.gates.HPAScaleToZero:
        draft.drop(conditions.SCALED_TO_ZERO)
    elif arrives_at_zero(spec, current, replicas):
        draft.find(conditions.WENT_TO_ZERO)
    else:
        draft.find(conditions.NOT_AT_ZERO)


def _stuck(
    draft: Draft, slots: tuple[MetricStatus, ...] | None, problem: str, *, blames_spec: bool = False
) -> Decision:
    """Conclude without a size: the target stays as it is, and so does what status says was desired."""
    _settle_fallback(draft, slots)
    _hold(draft, draft.current)
    draft.late_events.append(conditions.warning("FailedComputeMetricsReplicas", problem))
    status = _status(draft, draft.autoscaler.status.desired_replicas, slots)
    error = f"failed to compute desired number of replicas based on listed metrics for {draft.reference}: {problem}"
    return _decision(draft, status, draft.current, Ending(error=error, failed=True, blames_spec=blames_spec))


def _hold(draft: Draft, replicas: int) -> bool:
    """Hold the decision back if the target has another owner, or the user asked for that."""
    spec, rivals = draft.autoscaler.spec, draft.seen.rivals
    if rivals:
        draft.find(conditions.has_rivals(rivals))
        draft.working.append(Held(Hold.RIVAL, replicas, draft.current, rivals=rivals))
    elif spec.mode == PAUSED and (spec.paused_until is None or spec.paused_until > draft.now):
        draft.find(conditions.paused(spec.paused_until, replicas))
        draft.working.append(Held(Hold.PAUSED, replicas, draft.current, spec.paused_until))
    elif spec.mode == DRY_RUN:
        draft.find(conditions.dry_run(replicas))
        draft.working.append(Held(Hold.DRY_RUN, replicas, draft.current))
    else:
        return False
    return True


def _settle_fallback(draft: Draft, slots: Sequence[MetricStatus] | None, unknown: Finding | None = None) -> None:
    """Say whether a fallback is in use, on an autoscaler that has one."""
    if not draft.has_fallback:
        draft.drop(conditions.FALLBACK_ACTIVE)
    elif not draft.gates.HPAExternalMetricFallback:
        draft.find(conditions.FALLBACK_FEATURE_OFF)
    else:
        draft.find(unknown or fallback.finding(slots or ()))


def _status(draft: Draft, desired: int, slots: tuple[MetricStatus, ...] | None, *, rescaled: bool = False) -> Status:
    autoscaler = draft.autoscaler
    return Status(
        desired_replicas=desired,
        current_metrics=slots,
        observed_generation=autoscaler.metadata.generation if draft.gates.HPAGeneration else None,
        last_scale_time=draft.second if rescaled else autoscaler.status.last_scale_time,
        current_replicas=draft.current,
        conditions=draft.conditions(),
    )


def _decision(draft: Draft, status: Status, replicas: int, ending: Ending = _UNEVENTFUL) -> Decision:
    return Decision(
        at=draft.now,
        replicas=replicas,
        scale_to=ending.scale_to,
        status=status,
        status_changed=not status.says_the_same_as(draft.autoscaler.status),
        history=draft.past,
        working=tuple(draft.working),
        events=tuple(draft.events),
        late_events=tuple(draft.late_events),
        rescale_reason=ending.rescale_reason,
        error=ending.error,
        failed=ending.failed,
        blames_spec=ending.blames_spec,
    )
