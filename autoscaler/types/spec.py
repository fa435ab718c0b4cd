"""What the user asked for: autoscaling/v2's HorizontalPodAutoscalerSpec field for field, plus what this project adds.

Strings that Kubernetes restricts to a few words are plain strings here, because a spec must be able to hold a wrong
word for validation to name it. ``None`` always means "not written by the user".
"""

from datetime import datetime
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from autoscaler.types.record import Record
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import LabelSelector

Int32: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
"""A whole number as wide as the API's; a wider one does not decode."""

Int64: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

Time: TypeAlias = Annotated[datetime, Meta(tz=True)]
"""A moment that knows its time zone; one without does not decode."""

RESOURCE: Final = "Resource"
CONTAINER_RESOURCE: Final = "ContainerResource"
PODS: Final = "Pods"
OBJECT: Final = "Object"
EXTERNAL: Final = "External"

UTILIZATION: Final = "Utilization"
VALUE: Final = "Value"
AVERAGE_VALUE: Final = "AverageValue"

PODS_POLICY: Final = "Pods"
PERCENT_POLICY: Final = "Percent"

SELECT_MAX: Final = "Max"
SELECT_MIN: Final = "Min"
SELECT_DISABLED: Final = "Disabled"

STATIC: Final = "Static"
USE_MAX: Final = "UseMax"
USE_MIN: Final = "UseMin"

ACTIVE: Final = "Active"
DRY_RUN: Final = "DryRun"
PAUSED: Final = "Paused"


class ObjectReference(Record):
    """A Kubernetes object in the same namespace: the scale target, or the object a metric describes."""

    kind: str = ""
    name: str = ""
    api_version: str = ""


class MetricIdentifier(Record):
    """A metric's name and the selector that narrows it to some of its series."""

    name: str = ""
    selector: LabelSelector | None = None


class MetricTarget(Record):
    """What the metric should be. Which field counts depends on the source, not always on ``type``."""

    type: str = ""
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: Int32 | None = None


class ResourceSource(Record):
    """A resource (cpu, memory, …) of the target's pods, all containers together."""

    name: str = ""
    target: MetricTarget = MetricTarget()


class ContainerResourceSource(Record):
    """A resource of one named container in each of the target's pods."""

    name: str = ""
    target: MetricTarget = MetricTarget()
    container: str = ""


class PodsSource(Record):
    """A custom metric that each of the target's pods has."""

    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()


class ObjectSource(Record):
    """A custom metric of one Kubernetes object."""

    described_object: ObjectReference = ObjectReference()
    target: MetricTarget = MetricTarget()
    metric: MetricIdentifier = MetricIdentifier()


class Fallback(Record):
    """What an external metric proposes once it has been unreadable for a while (KEP-5679)."""

    replicas: Int32 | None = None
    """The replica count to propose. Required; ``None`` only so that its absence can be reported."""

    failure_duration_seconds: Int64 | None = None
    """How long reads must have been failing without a break. Default 180."""

    strategy: str | None = None
    """``Static``: replicas. ``UseMax``/``UseMin``: the larger/smaller of replicas and the size at activation."""


class ExternalSource(Record):
    """A metric that belongs to no Kubernetes object: a queue's length, a load balancer's rate."""

    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()
    fallback: Fallback | None = None


class Metric(Record):
    """One entry of ``spec.metrics``: a type, and the source of that type."""

    type: str = ""
    object: ObjectSource | None = None
    pods: PodsSource | None = None
    resource: ResourceSource | None = None
    container_resource: ContainerResourceSource | None = None
    external: ExternalSource | None = None


class Policy(Record):
    """At most ``value`` pods, or percent, may change within ``period_seconds``."""

    type: str = ""
    value: Int32 = 0
    period_seconds: Int32 = 0


class ScalingRules(Record):
    """How one direction behaves."""

    stabilization_window_seconds: Int32 | None = None
    select_policy: str | None = None
    policies: tuple[Policy, ...] | None = None
    tolerance: Quantity | None = None


class Behavior(Record):
    """How both directions behave. An absent behavior is not "all defaults": upstream takes another path for it."""

    scale_up: ScalingRules | None = None
    scale_down: ScalingRules | None = None


class Spec(Record):
    """What the user asked for."""

    scale_target_ref: ObjectReference = ObjectReference()
    min_replicas: Int32 | None = None
    max_replicas: Int32 = 0
    metrics: tuple[Metric, ...] | None = None
    behavior: Behavior | None = None

    mode: str | None = None
    """``Active`` (default): decide and scale. ``DryRun``: decide, tell, never scale. ``Paused``: likewise, a while."""

    paused_until: Time | None = None
    """With ``mode: Paused``: when to become active by itself. Absent: until someone edits the spec."""
