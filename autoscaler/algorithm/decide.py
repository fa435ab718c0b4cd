"""The pipeline, top to bottom on one screen: where a pass goes, what it concludes, and the working on the way."""

from datetime import datetime

from autoscaler.algorithm import results
from autoscaler.algorithm.combine import combine
from autoscaler.algorithm.decision_builder import Draft
from autoscaler.algorithm.evaluate_metrics import hear
from autoscaler.algorithm.limit import limit
from autoscaler.algorithm.metric_context import Scene, tolerance_of
from autoscaler.algorithm.selection import refuse_selector
from autoscaler.algorithm.stabilize import stabilize
from autoscaler.algorithm.target import find_target
from autoscaler.algorithm.zero import Off, ToBound, choose_route, minimum_of
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.observation import Observation, TargetUnreadable


def decide(
    *,
    autoscaler: Autoscaler,
    seen: Observation,
    past: History,
    settings: Settings,
    gates: FeatureGates,
    now: datetime,
) -> Decision:
    """Say how many replicas there should be, and why; read nothing, write nothing."""
    spec, draft = autoscaler.spec, Draft(autoscaler, seen, past, gates, now)
    target = find_target(draft)
    if isinstance(target, TargetUnreadable):
        return results.without_target(draft, target)

    current, bounds = target.replicas, (minimum_of(spec), spec.max_replicas)
    route = choose_route(spec, current, zeroed_by_us=draft.zeroed_by_us)
    if isinstance(route, Off):
        return results.switched_off(draft)
    if isinstance(route, ToBound):
        return results.at_bound(draft, route)
    refusal = refuse_selector(target, seen)
    if refusal is not None:
        return results.without_pods(draft, refusal)

    tolerance = tolerance_of(spec.behavior, settings, gates)
    scene = Scene(autoscaler.metadata.namespace, target, seen.pods, tolerance, settings, gates, now)
    verdicts = hear(spec.metrics or (), seen.readings, scene, draft)
    combined = combine(verdicts, current)
    if combined.blocked:
        return results.blocked(draft, verdicts, combined)

    steadied = stabilize(combined.replicas, current, draft.past.recommendations, spec.behavior, settings, now)
    limited = limit(steadied.step.replicas, current, bounds, spec.behavior, draft.past, now)
    return results.computed(draft, verdicts, combined, steadied, limited, floor=route.floor)
