"""Derive the decision that results if the write of the scale or of the status failed or has an unknown outcome."""

from typing import Final

from msgspec.structs import replace

from autoscaler.algorithm import conditions
from autoscaler.algorithm.zero import is_scale_to_zero, scaled_to_zero
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision, Event
from autoscaler.types.history import History, UnknownRescale
from autoscaler.types.status import Condition, Status
from autoscaler.types.steps import ResultStep, WriteFailedStep

MAX_UNKNOWN: Final = 8
"""Limits the rescales with unknown outcome; a new one is added at most once per sync period, and none stays for long if
the scale can be read."""


def after_failed_rescale(decision: Decision, autoscaler: Autoscaler, history: History, error: str) -> Decision:
    """Return the decision for a failed write of the scale.

    The history contains the new recommendation, but not the rescale, because the replicas did not change.
    """
    replicas = decision.replicas
    before, scale = autoscaler.status, autoscaler.spec.scale_target_ref
    status = replace(
        decision.status,
        desired_replicas=before.desired_replicas,
        last_scale_time=before.last_scale_time,
        conditions=_conditions_after_failure(decision, autoscaler, error),
    )
    message = f"New size: {replicas}; reason: {decision.rescale_reason}; error: {error}"
    events = tuple(event for event in decision.events if event.reason != "SuccessfulRescale")
    return replace(
        decision,
        scale_to=None,
        status=status,
        status_changed=not status.is_equivalent_to(before),
        history=replace(decision.history, scale_ups=history.scale_ups, scale_downs=history.scale_downs),
        steps=(*(s for s in decision.steps if not isinstance(s, ResultStep)), WriteFailedStep(replicas, error)),
        events=(*events, conditions.warning_event("FailedRescale", message)),
        error=f"failed to rescale {scale.kind}/{autoscaler.metadata.namespace}/{scale.name}: {error}",
        failed=True,
        caused_by_spec=False,
    )


def after_unknown_rescale(
    decision: Decision, autoscaler: Autoscaler, history: History, rescale: UnknownRescale, error: str
) -> Decision:
    """Return the decision for a write of the scale whose outcome is unknown.

    As after a failed write, nothing is reported as done. The rescale is kept in the history until its outcome is
    known, and ScaledToZero stays True if it was so before, or is so if the write is applied.
    """
    failed = after_failed_rescale(decision, autoscaler, history, error)
    update = conditions.rescale_outcome_unknown(rescale.replicas, error)
    unknown = Condition(update.type, update.status, decision.at.replace(microsecond=0), update.reason, update.message)
    status = with_condition(failed.status, unknown)
    zero = decision.status.condition(conditions.SCALED_TO_ZERO)
    if zero is not None and scaled_to_zero(decision.status):
        status = with_condition(status, zero)
    message = f"New size: {rescale.replicas}; reason: {rescale.reason}; outcome unknown: {error}"
    earlier = [old for old in history.unknown if not _is_repeated(old, rescale)]
    scale = autoscaler.spec.scale_target_ref
    return replace(
        failed,
        status=status,
        status_changed=not status.is_equivalent_to(autoscaler.status),
        history=replace(failed.history, unknown=(*earlier, rescale)[-MAX_UNKNOWN:]),
        steps=(*failed.steps[:-1], WriteFailedStep(rescale.replicas, error, outcome_unknown=True)),
        events=(*failed.events[:-1], conditions.warning_event("RescaleOutcomeUnknown", message)),
        error=f"outcome of rescaling {scale.kind}/{autoscaler.metadata.namespace}/{scale.name} is unknown: {error}",
    )


def after_late_rescale(autoscaler: Autoscaler, rescale: UnknownRescale) -> tuple[Status, Event]:
    """Return status and event for a rescale that is now known to have been applied, as if its response had arrived."""
    second = rescale.at.replace(microsecond=0)
    status = replace(autoscaler.status, last_scale_time=second)
    is_zero = is_scale_to_zero(autoscaler.spec, rescale.before, rescale.replicas)
    if scaled_to_zero(status) and not is_zero:
        new = conditions.SCALED_TO_ZERO_FALSE
        status = with_condition(status, Condition(new.type, new.status, second, new.reason, new.message))
    message = f"New size: {rescale.replicas}; reason: {rescale.reason}"
    return status, conditions.normal_event("SuccessfulRescale", message)


def with_condition(status: Status, new: Condition) -> Status:
    """Return the status with one condition replaced or added."""
    if any(old.type == new.type for old in status.conditions):
        return replace(status, conditions=tuple(new if old.type == new.type else old for old in status.conditions))
    return replace(status, conditions=(*status.conditions, new))


def _is_repeated(old: UnknownRescale, new: UnknownRescale) -> bool:
    return (old.replicas, old.resource_version) == (new.replicas, new.resource_version)


def _conditions_after_failure(decision: Decision, autoscaler: Autoscaler, error: str) -> tuple[Condition, ...]:
    """Revert the conditions that a successful write of the scale would have set, and keep their order.

    Like upstream, the transition time of AbleToScale changes in every such reconcile: the condition became True when
    the scale was read, and False when the write failed.
    """
    updated = {condition.type: condition for condition in decision.status.conditions}
    updated.pop(conditions.SCALED_TO_ZERO, None)
    failure = conditions.rescale_failed(error)
    second = decision.at.replace(microsecond=0)
    updated[failure.type] = Condition(failure.type, failure.status, second, failure.reason, failure.message)
    before = autoscaler.status.conditions
    ordered = [
        updated.pop(old.type, old) for old in before if old.type in updated or old.type == conditions.SCALED_TO_ZERO
    ]
    return (*ordered, *updated.values())


def after_failed_status_write(decision: Decision, name: str, error: str) -> Decision:
    """Return the decision for a failed write of the status; an earlier error takes precedence."""
    return replace(
        decision,
        events=(*decision.events, conditions.warning_event("FailedUpdateStatus", error)),
        error=decision.error if decision.failed else f"failed to update status for {name}: {error}",
        caused_by_spec=decision.failed and decision.caused_by_spec,
    )
