"""Decisions without evaluation, for an invalid spec and for a reconcile that raised: only conditions change."""

from datetime import datetime

from msgspec.structs import replace

from autoscaler.algorithm import conditions
from autoscaler.algorithm.conditions import ConditionUpdate
from autoscaler.algorithm.decision_builder import DecisionBuilder
from autoscaler.settings import FeatureGates
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.observation import Observation, UnavailableTarget
from autoscaler.types.steps import InvalidSpecStep, ReconcileFailedStep, Step

_NOT_OBSERVED = Observation(UnavailableTarget("not read"))


def decide_invalid_spec(
    *, autoscaler: Autoscaler, problems: tuple[str, ...], history: History, gates: FeatureGates, now: datetime
) -> Decision:
    """Return the decision for an invalid spec; the condition lists the problems."""
    builder, text = DecisionBuilder(autoscaler, _NOT_OBSERVED, history, gates, now), "; ".join(problems)
    decision = _not_evaluated(builder, conditions.spec_invalid(problems), text, InvalidSpecStep(problems))
    return replace(decision, error=f"the spec is invalid: {text}", caused_by_spec=True)


def decide_failed_reconcile(
    *, autoscaler: Autoscaler, error: str, history: History, gates: FeatureGates, now: datetime
) -> Decision:
    """Return the decision for a reconcile that raised; the condition names the exception."""
    builder = DecisionBuilder(autoscaler, _NOT_OBSERVED, history, gates, now)
    decision = _not_evaluated(builder, conditions.reconcile_failed(error), error, ReconcileFailedStep(error))
    return replace(decision, error=error)


def _not_evaluated(builder: DecisionBuilder, update: ConditionUpdate, event: str, step: Step) -> Decision:
    """Set a condition; the event is sent when its reason or message changes."""
    autoscaler = builder.autoscaler
    before, old = autoscaler.status, autoscaler.status.condition(update.type)
    builder.set_condition(update)
    is_new = old is None or (old.reason, old.message) != (update.reason, update.message)
    generation = autoscaler.metadata.generation if builder.gates.HPAGeneration else before.observed_generation
    status = replace(before, conditions=builder.conditions(), observed_generation=generation)
    return Decision(
        at=builder.now,
        replicas=before.desired_replicas,
        scale_to=None,
        status=status,
        status_changed=not status.is_equivalent_to(before),
        history=builder.history,
        steps=(step,),
        events=(conditions.warning_event(update.reason, event),) if is_new else (),
        failed=True,
    )
