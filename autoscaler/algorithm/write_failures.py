"""Derive the decision that results if the write of the scale or of the status failed."""

from msgspec.structs import replace

from autoscaler.algorithm import conditions
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.status import Condition
from autoscaler.types.steps import ResultStep, WriteFailedStep


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
