"""The decision for an invalid spec: neither target nor metrics are evaluated, and the condition lists the problems."""

from datetime import datetime

from msgspec.structs import replace

from autoscaler.algorithm import conditions
from autoscaler.algorithm.decision_builder import DecisionBuilder
from autoscaler.settings import FeatureGates
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.observation import Observation, UnavailableTarget
from autoscaler.types.steps import InvalidSpecStep

_NOT_OBSERVED = Observation(UnavailableTarget("not read, because the spec is invalid"))


def decide_invalid_spec(
    *, autoscaler: Autoscaler, problems: tuple[str, ...], history: History, gates: FeatureGates, now: datetime
) -> Decision:
    """Return a decision that changes only conditions; the event is sent once per set of problems."""
    before, update = autoscaler.status, conditions.spec_invalid(problems)
    builder, old = DecisionBuilder(autoscaler, _NOT_OBSERVED, history, gates, now), before.condition(update.type)
    builder.set_condition(update)
    is_new = old is None or (old.reason, old.message) != (update.reason, update.message)
    generation = autoscaler.metadata.generation if gates.HPAGeneration else before.observed_generation
    status = replace(before, conditions=builder.conditions(), observed_generation=generation)
    return Decision(
        at=now,
        replicas=before.desired_replicas,
        scale_to=None,
        status=status,
        status_changed=not status.is_equivalent_to(before),
        history=history,
        steps=(InvalidSpecStep(problems),),
        events=(conditions.warning_event(update.reason, "; ".join(problems)),) if is_new else (),
        error=f"the spec is invalid: {'; '.join(problems)}",
        failed=True,
        caused_by_spec=True,
    )
