"""Take the target's scale from the observation."""

from autoscaler.algorithm import conditions
from autoscaler.algorithm.decision_builder import DecisionBuilder
from autoscaler.algorithm.zero import minimum_of
from autoscaler.types.observation import ScaleTarget, TargetReadStage, UnavailableTarget
from autoscaler.types.steps import TargetStep


def find_target(builder: DecisionBuilder) -> ScaleTarget | UnavailableTarget:
    """Return the target, or the stage at which reading it failed. Seeds an empty history with its replicas."""
    spec, target = builder.autoscaler.spec, builder.observation.target
    if spec.scale_target_ref.api_version.count("/") > 1:
        problem = f"unexpected GroupVersion string: {spec.scale_target_ref.api_version}"
        return UnavailableTarget(problem, TargetReadStage.REFERENCE)
    if isinstance(target, UnavailableTarget):
        return target
    builder.current = target.replicas
    builder.set_condition(conditions.TARGET_READ)
    builder.history = builder.history.seeded(target.replicas, builder.now)
    builder.steps.append(TargetStep(target.replicas, target.status_replicas, minimum_of(spec), spec.max_replicas))
    return target
