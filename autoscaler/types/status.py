"""The status of an autoscaler: autoscaling/v2's HorizontalPodAutoscalerStatus plus fallback state and history."""

from collections.abc import Mapping
from typing import Any, Final

from autoscaler.types.record import Record
from autoscaler.types.spec import MetricIdentifier, ObjectReference, Time
from autoscaler.values.quantity import Quantity

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"

NORMAL: Final = "Normal"
FALLBACK: Final = "Fallback"


class MetricValue(Record):
    """The current value of a metric; the type of the metric's target determines which fields are set."""

    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: int | None = None


class ObjectMetricStatus(Record):
    """The current value of an Object metric."""

    metric: MetricIdentifier
    current: MetricValue
    described_object: ObjectReference


class PodsMetricStatus(Record):
    """The current value of a Pods metric."""

    metric: MetricIdentifier
    current: MetricValue


class ResourceMetricStatus(Record):
    """The current value of a Resource metric."""

    name: str
    current: MetricValue


class ContainerResourceMetricStatus(Record):
    """The current value of a ContainerResource metric."""

    name: str
    current: MetricValue
    container: str


class ExternalMetricStatus(Record):
    """The current value of an External metric and, if it has a fallback, the state of the fallback."""

    metric: MetricIdentifier
    current: MetricValue

    fallback_status: str | None = None
    """``Normal`` or ``Fallback``. ``Normal`` with a ``first_failure_time``: failing, but not yet in fallback."""

    first_failure_time: Time | None = None
    """When the current run of failed reads began; None if the last read succeeded."""

    fallback_replicas: int | None = None
    """The replica count that the fallback proposes; None if not in fallback."""

    captured_replicas: int | None = None
    """The target's replicas when the fallback was activated. Constant until recovery: UseMax and UseMin would otherwise
    depend on their own result."""

    failure_message: str | None = None
    """Why the last read failed; None if it succeeded."""


class MetricStatus(Record):
    """One entry of ``status.currentMetrics``. A metric that could not be read has an empty type, as in upstream."""

    type: str
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None


UNREAD: Final = MetricStatus(type="")


class Condition(Record):
    """A status condition."""

    type: str
    status: str
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


def condition_of(status: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """Return the condition of type ``kind`` from a status in JSON form; None if there is none."""
    return next((condition for condition in status.get("conditions") or () if condition.get("type") == kind), None)


class Status(Record):
    """The status of an autoscaler: the stored one, or the one that a decision computed."""

    desired_replicas: int = 0
    current_metrics: tuple[MetricStatus, ...] | None = None
    observed_generation: int | None = None
    last_scale_time: Time | None = None
    current_replicas: int = 0
    conditions: tuple[Condition, ...] = ()
    controller_state: str | None = None
    """The history, serialized by ``controller.persistence``, so that a new leader continues from it."""

    reference: str | None = None
    """Kind and name of the target, for ``kubectl get``."""

    state: str | None = None
    """The states of the autoscaler, for ``kubectl get``; see ``algorithm.state_changes``."""

    targets: str | None = None
    """Current and target values of the metrics, for ``kubectl get``; see ``algorithm.targets``."""

    def condition(self, kind: str) -> Condition | None:
        for condition in self.conditions:  # a generator would take twice the time, and each reconcile calls this often
            if condition.type == kind:
                return condition
        return None

    def is_equivalent_to(self, other: "Status") -> bool:
        """Return whether this status need not be written, because ``other``, the stored one, is equivalent.

        Quantities are compared by value, None equals an empty list of metrics. ``controller_state`` is ignored, and
        ``reference`` and ``targets``, which depend on the spec and the other fields.
        """
        return (
            self.desired_replicas == other.desired_replicas
            and self.current_replicas == other.current_replicas
            and self.observed_generation == other.observed_generation
            and self.last_scale_time == other.last_scale_time
            and self.conditions == other.conditions
            and self.state == other.state
            and (self.current_metrics or ()) == (other.current_metrics or ())
        )
