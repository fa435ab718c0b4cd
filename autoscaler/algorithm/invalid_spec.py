"""What follows from a spec that makes no sense: neither target nor metrics are looked at, and the user is told why."""

from datetime import datetime

from msgspec.structs import replace

from autoscaler.algorithm import conditions
from autoscaler.algorithm.decision_builder import Draft
from autoscaler.settings import FeatureGates
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.observation import Observation, TargetUnreadable
from autoscaler.types.steps import SpecRefused

_NOTHING = Observation(TargetUnreadable("it was not looked at"))


def refuse(
    *, autoscaler: Autoscaler, problems: tuple[str, ...], past: History, gates: FeatureGates, now: datetime
) -> Decision:
    """Say what is wrong; only conditions change, and the event comes once for each version of the problem."""
    before, finding = autoscaler.status, conditions.spec_invalid(problems)
    draft, told = Draft(autoscaler, _NOTHING, past, gates, now), before.condition(finding.type)
    draft.find(finding)
    is_new = told is None or (told.reason, told.message) != (finding.reason, finding.message)
    generation = autoscaler.metadata.generation if gates.HPAGeneration else before.observed_generation
    status = replace(before, conditions=draft.conditions(), observed_generation=generation)
    return Decision(
        at=now,
        replicas=before.desired_replicas,
        scale_to=None,
        status=status,
        status_changed=not status.says_the_same_as(before),
        history=past,
        working=(SpecRefused(problems),),
        events=(conditions.warning(finding.reason, "; ".join(problems)),) if is_new else (),
        error=f"the spec is invalid: {'; '.join(problems)}",
        failed=True,
        blames_spec=True,
    )
