"""Scaling from and to zero, and the route of a decision: scaling disabled, move to a bound, or evaluate the metrics."""

from typing import TypeAlias

from autoscaler.algorithm.conditions import SCALED_TO_ZERO
from autoscaler.settings import FeatureGates
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.record import Record
from autoscaler.types.spec import EXTERNAL, OBJECT, Spec
from autoscaler.types.status import TRUE, Status

ABOVE_MAXIMUM = "Current number of replicas above Spec.MaxReplicas"
BELOW_MINIMUM = "Current number of replicas below Spec.MinReplicas"


class ScalingDisabled(Record):
    """The target has 0 replicas that this autoscaler did not set: do not scale it."""


class MoveToBound(Record):
    """The target is outside its bounds: scale it to the nearer one without evaluating metrics."""

    replicas: int
    reason: str


class EvaluateMetrics(Record):
    """The metrics determine the replicas."""

    minimum: int = 0
    """Lower limit of the result, if minReplicas was raised after this autoscaler scaled the target to zero."""


Route: TypeAlias = ScalingDisabled | MoveToBound | EvaluateMetrics

_SCALING_DISABLED = ScalingDisabled()
_EVALUATE_METRICS = EvaluateMetrics()


def choose_route(autoscaler: Autoscaler, current: int, gates: FeatureGates) -> Route:
    """Return how the replicas are determined, given the target's current replicas."""
    spec = autoscaler.spec
    minimum = minimum_of(spec)
    if current == 0:
        if not (gates.HPAScaleToZero and scaled_to_zero(autoscaler.status)):
            return _SCALING_DISABLED
        if minimum != 0:
            return EvaluateMetrics(minimum)
        return _EVALUATE_METRICS if has_metric_without_pods(spec) else _SCALING_DISABLED
    if current > spec.max_replicas:
        return MoveToBound(spec.max_replicas, ABOVE_MAXIMUM)
    if current < minimum:
        return MoveToBound(minimum, BELOW_MINIMUM)
    return _EVALUATE_METRICS


def scaled_to_zero(status: Status) -> bool:
    """Return whether this autoscaler, and not a user, scaled the target to zero, by the ScaledToZero condition."""
    condition = status.condition(SCALED_TO_ZERO)
    return condition is not None and condition.status == TRUE


def minimum_of(spec: Spec) -> int:
    """Return minReplicas, or its default of 1."""
    return 1 if spec.min_replicas is None else spec.min_replicas


def has_metric_without_pods(spec: Spec) -> bool:
    """Return whether some metric has a value even if there are no pods (Object and External)."""
    return any(metric.type in (OBJECT, EXTERNAL) for metric in spec.metrics or ())


def is_scale_to_zero(spec: Spec, current: int, replicas: int) -> bool:
    """Return whether a rescale goes to zero and this autoscaler can scale up from zero again."""
    return current > 0 and replicas == 0 and minimum_of(spec) == 0 and has_metric_without_pods(spec)
