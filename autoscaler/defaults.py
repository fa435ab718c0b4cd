"""Defaults of a spec: those of autoscaling/v2, and those of the fallback.

An absent ``mode`` stays absent, because all code treats it as Active.
"""

from typing import Final

from msgspec.structs import replace

from autoscaler.types.spec import (
    PERCENT_POLICY,
    PODS_POLICY,
    RESOURCE,
    SELECT_MAX,
    STATIC,
    UTILIZATION,
    Behavior,
    Fallback,
    Metric,
    MetricTarget,
    Policy,
    ResourceSource,
    ScalingRules,
    Spec,
)

MIN_REPLICAS: Final = 1
FAILURE_DURATION_SECONDS: Final = 180
MAX_FAILURE_DURATION_SECONDS: Final = 365 * 24 * 60 * 60

CPU_AT_80_PERCENT: Final = Metric(
    type=RESOURCE, resource=ResourceSource("cpu", MetricTarget(type=UTILIZATION, average_utilization=80))
)

SCALE_UP: Final = ScalingRules(
    stabilization_window_seconds=0,
    select_policy=SELECT_MAX,
    policies=(Policy(PODS_POLICY, 4, 15), Policy(PERCENT_POLICY, 100, 15)),
)

SCALE_DOWN: Final = ScalingRules(
    # The default window is a setting of the controller, not part of the spec.
    select_policy=SELECT_MAX,
    policies=(Policy(PERCENT_POLICY, 100, 15),),
)


def with_defaults(spec: Spec) -> Spec:
    """Return the spec with defaults for absent fields. Empty metrics count as absent, empty policies do not."""
    behavior = spec.behavior
    return replace(
        spec,
        min_replicas=MIN_REPLICAS if spec.min_replicas is None else spec.min_replicas,
        metrics=tuple(map(_metric, spec.metrics)) if spec.metrics else (CPU_AT_80_PERCENT,),
        behavior=behavior and Behavior(_rules(behavior.scale_up, SCALE_UP), _rules(behavior.scale_down, SCALE_DOWN)),
    )


def _rules(rules: ScalingRules | None, default: ScalingRules) -> ScalingRules:
    if rules is None:
        return default
    fields = {name: value for name in rules.__struct_fields__ if (value := getattr(rules, name)) is not None}
    return replace(default, **fields)


def _metric(metric: Metric) -> Metric:
    external = metric.external
    if external is None or external.fallback is None:
        return metric
    return replace(metric, external=replace(external, fallback=_fallback(external.fallback)))


def _fallback(fallback: Fallback) -> Fallback:
    duration = fallback.failure_duration_seconds
    return replace(
        fallback,
        failure_duration_seconds=FAILURE_DURATION_SECONDS if duration is None else duration,
        strategy=STATIC if fallback.strategy is None else fallback.strategy,
    )
