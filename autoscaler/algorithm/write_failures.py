"""What follows from a decision when a write it asked for did not succeed."""

from msgspec.structs import replace

from autoscaler.algorithm import conditions
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.status import Condition
from autoscaler.types.steps import Concluded, WriteFailed


def after_failed_rescale(decision: Decision, autoscaler: Autoscaler, past: History, error: str) -> Decision:
    """Say what follows if the scale could not be written: the recommendation stands, the rescale does not."""
    replicas = decision.replicas
    before, scale = autoscaler.status, autoscaler.spec.scale_target_ref
    status = replace(
        decision.status,
        desired_replicas=before.desired_replicas,
        last_scale_time=before.last_scale_time,
        conditions=_unscaled(decision, autoscaler, error),
    )
    told = f"New size: {replicas}; reason: {decision.rescale_reason}; error: {error}"
    events = tuple(event for event in decision.events if event.reason != "SuccessfulRescale")
    return replace(
        decision,
        scale_to=None,
        status=status,
        status_changed=not status.says_the_same_as(before),
        history=replace(decision.history, scale_ups=past.scale_ups, scale_downs=past.scale_downs),
        working=(*(s for s in decision.working if not isinstance(s, Concluded)), WriteFailed(replicas, error)),
        events=(*events, conditions.warning("FailedRescale", told)),
        error=f"failed to rescale {scale.kind}/{autoscaler.metadata.namespace}/{scale.name}: {error}",
        failed=True,
        blames_spec=False,
    )


def _unscaled(decision: Decision, autoscaler: Autoscaler, error: str) -> tuple[Condition, ...]:
    """Take back what only a written scale would have said, and leave every condition in its place.

    The time of AbleToScale moves in every such pass: it was true when the scale was read, and is false now.
    """
    found = {condition.type: condition for condition in decision.status.conditions}
    found.pop(conditions.SCALED_TO_ZERO, None)
    failure = conditions.not_rescaled(error)
    second = decision.at.replace(microsecond=0)
    found[failure.type] = Condition(failure.type, failure.status, second, failure.reason, failure.message)
    before = autoscaler.status.conditions
    kept = [found.pop(old.type, old) for old in before if old.type in found or old.type == conditions.SCALED_TO_ZERO]
    return (*kept, *found.values())


def after_failed_status_write(decision: Decision, name: str, error: str) -> Decision:
    """Say what the pass concludes if its status could not be written; an earlier failure stays the one it ends with."""
    return replace(
        decision,
        events=(*decision.events, conditions.warning("FailedUpdateStatus", error)),
        error=decision.error if decision.failed else f"failed to update status for {name}: {error}",
        blames_spec=decision.failed and decision.blames_spec,
    )
