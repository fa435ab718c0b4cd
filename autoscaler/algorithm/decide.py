"""The scaling pipeline: target, route, selector, metrics, recommendation, stabilization, limits, result."""

from datetime import datetime

from autoscaler.algorithm import conditions, results
from autoscaler.algorithm.decision_builder import DecisionBuilder
from autoscaler.algorithm.evaluate_metrics import combine, evaluate_metrics
from autoscaler.algorithm.limit import limit
from autoscaler.algorithm.metric_context import MetricContext, tolerance_of
from autoscaler.algorithm.selection import check_selector
from autoscaler.algorithm.stabilize import stabilize
from autoscaler.algorithm.zero import MoveToBound, ScalingDisabled, choose_route, minimum_of
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.observation import Observation, ScaleTarget, TargetReadStage, UnavailableTarget
from autoscaler.types.steps import TargetStep


def decide(
    *,
    autoscaler: Autoscaler,
    observation: Observation,
    history: History,
    settings: Settings,
    gates: FeatureGates,
    now: datetime,
) -> Decision:
    """Return the desired replicas and the steps that led to them; reads and writes nothing."""
    spec, builder = autoscaler.spec, DecisionBuilder(autoscaler, observation, history, gates, now)
    target = _find_target(builder)
    if isinstance(target, UnavailableTarget):
        return results.target_unavailable(builder, target)

    current, bounds = target.replicas, (minimum_of(spec), spec.max_replicas)
    route = choose_route(autoscaler, current, gates)
    if isinstance(route, ScalingDisabled):
        return results.scaling_disabled(builder)
    if isinstance(route, MoveToBound):
        return results.moved_to_bound(builder, route)
    problem = check_selector(target, observation)
    if problem is not None:
        return results.invalid_selector(builder, problem)

    tolerance = tolerance_of(spec.behavior, settings, gates)
    namespace = autoscaler.metadata.namespace
    context = MetricContext(namespace, target, observation.pods, tolerance, settings, gates, now)
    metric_results = evaluate_metrics(spec.metrics or (), observation.readings, context, builder)
    recommendation = combine(metric_results, current)
    if recommendation.blocked:
        return results.blocked(builder, metric_results, recommendation)

    recent = builder.history.recommendations
    stabilized = stabilize(recommendation.replicas, current, recent, spec.behavior, settings, now)
    limited = limit(stabilized.step.replicas, current, bounds, spec.behavior, builder.history, now)
    return results.computed(builder, metric_results, recommendation, stabilized, limited, minimum=route.minimum)


def _find_target(builder: DecisionBuilder) -> ScaleTarget | UnavailableTarget:
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
