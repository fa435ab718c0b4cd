"""Finds the target's scale in what was seen."""

from autoscaler.algorithm import conditions
from autoscaler.algorithm.decision_builder import Draft
from autoscaler.algorithm.zero import minimum_of
from autoscaler.types.observation import Hop, ScaleTarget, TargetUnreadable
from autoscaler.types.steps import TargetSeen


def find_target(draft: Draft) -> ScaleTarget | TargetUnreadable:
    """Take the target as it was seen, or say on which hop it was lost; a first sight seeds the history."""
    spec, target = draft.autoscaler.spec, draft.seen.target
    if spec.scale_target_ref.api_version.count("/") > 1:
        problem = f"unexpected GroupVersion string: {spec.scale_target_ref.api_version}"
        return TargetUnreadable(problem, Hop.REFERENCE)
    if isinstance(target, TargetUnreadable):
        return target
    draft.current = target.replicas
    draft.find(conditions.TARGET_READ)
    draft.past = draft.past.seeded(target.replicas, draft.now)
    draft.working.append(TargetSeen(target.replicas, target.status_replicas, minimum_of(spec), spec.max_replicas))
    return target
