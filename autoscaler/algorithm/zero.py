"""What zero replicas means, and where a pass goes from the target's size: off, to a bound, or to the metrics."""

from typing import TypeAlias

from autoscaler.types.record import Record
from autoscaler.types.spec import EXTERNAL, OBJECT, Spec

ABOVE = "Current number of replicas above Spec.MaxReplicas"
BELOW = "Current number of replicas below Spec.MinReplicas"


class Off(Record):
    """At zero, and not by our doing: someone switched the workload off."""


class ToBound(Record):
    """Outside the bounds: go to the nearer one without asking any metric."""

    replicas: int
    reason: str


class Ask(Record):
    """Ask the metrics."""

    floor: int = 0
    """At zero by our doing, and minReplicas was raised since: do not stay below this."""


Route: TypeAlias = Off | ToBound | Ask

_OFF = Off()
_ASK = Ask()


def choose_route(spec: Spec, current: int, *, zeroed_by_us: bool) -> Route:
    """Choose where this pass goes."""
    minimum = minimum_of(spec)
    if current == 0:
        if zeroed_by_us and minimum != 0:
            return Ask(floor=minimum)
        return _ASK if zeroed_by_us and sees_the_world_without_pods(spec) else _OFF
    if current > spec.max_replicas:
        return ToBound(spec.max_replicas, ABOVE)
    if current < minimum:
        return ToBound(minimum, BELOW)
    return _ASK


def minimum_of(spec: Spec) -> int:
    """Give minReplicas, or its default."""
    return 1 if spec.min_replicas is None else spec.min_replicas


def sees_the_world_without_pods(spec: Spec) -> bool:
    """Tell whether some metric has a number even when there is no pod."""
    return any(metric.type in (OBJECT, EXTERNAL) for metric in spec.metrics or ())


def arrives_at_zero(spec: Spec, current: int, replicas: int) -> bool:
    """Tell whether a rescale is one that this autoscaler may wake from later."""
    return current > 0 and replicas == 0 and minimum_of(spec) == 0 and sees_the_world_without_pods(spec)
