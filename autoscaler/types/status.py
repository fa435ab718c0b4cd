"""What an autoscaler says of itself: autoscaling/v2's status field for field, plus the state of each fallback."""

from datetime import datetime
from typing import Final

from autoscaler.types.record import Record
from autoscaler.types.spec import MetricIdentifier, ObjectReference
from autoscaler.values.quantity import Quantity

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"

NORMAL: Final = "Normal"
FALLBACK: Final = "Fallback"


class MetricValue(Record):
    """What a metric is now."""

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
    """The current value of an External metric and, where a fallback is configured, how its reads fare."""

    metric: MetricIdentifier
    current: MetricValue

    fallback_status: str | None = None
    """``Normal`` or ``Fallback``. ``Normal`` with a ``first_failure_time``: the clock is running."""

    first_failure_time: datetime | None = None
    """When the current run of failed reads began; absent while readable."""

    fallback_replicas: int | None = None
    """The proposal in use, while in fallback."""

    captured_replicas: int | None = None
    """The target's size when fallback activated, kept until recovery so that the proposal does not feed on itself."""


class MetricStatus(Record):
    """One entry of ``status.currentMetrics``. A metric that could not be read has an empty type, as upstream's."""

    type: str
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None


UNREAD: Final = MetricStatus(type="")


class Condition(Record):
    """One of Kubernetes' status lines."""

    type: str
    status: str
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class Status(Record):
    """What the autoscaler last said of itself."""

    desired_replicas: int = 0
    current_metrics: tuple[MetricStatus, ...] | None = None
    observed_generation: int | None = None
    last_scale_time: datetime | None = None
    current_replicas: int = 0
    conditions: tuple[Condition, ...] = ()
    memory: str | None = None
    """What windows and policies must not forget when the controller restarts; ``controller.persistence`` reads it."""

    def condition(self, kind: str) -> Condition | None:
        """Find a condition by its type."""
        for condition in self.conditions:
            if condition.type == kind:
                return condition
        return None

    def says_the_same_as(self, other: "Status") -> bool:
        """Tell whether writing one over the other would tell nobody anything new.

        Quantities count by value, no list as empty; what is only there to be remembered does not count.
        """
        return (
            self.desired_replicas == other.desired_replicas
            and self.current_replicas == other.current_replicas
            and self.observed_generation == other.observed_generation
            and self.last_scale_time == other.last_scale_time
            and self.conditions == other.conditions
            and (self.current_metrics or ()) == (other.current_metrics or ())
        )
