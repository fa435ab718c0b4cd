"""The spec of an autoscaler: autoscaling/v2's HorizontalPodAutoscalerSpec plus mode, pausedUntil and fallback.

Enumerations of the Kubernetes API are plain strings here, so that an invalid value can be decoded and reported by
validation. ``None`` means that the field is not set.
"""

from datetime import datetime
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from autoscaler.types.record import Record
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import LabelSelector, format_label_selector

Int32: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
"""An int32 of the API; a larger number fails to decode."""

Int64: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

Time: TypeAlias = Annotated[datetime, Meta(tz=True)]
"""A timestamp with a time zone; a timestamp without one fails to decode."""

# Metric.type
RESOURCE: Final = "Resource"
CONTAINER_RESOURCE: Final = "ContainerResource"
PODS: Final = "Pods"
OBJECT: Final = "Object"
EXTERNAL: Final = "External"

# MetricTarget.type
UTILIZATION: Final = "Utilization"
VALUE: Final = "Value"
AVERAGE_VALUE: Final = "AverageValue"

# Policy.type
PODS_POLICY: Final = "Pods"
PERCENT_POLICY: Final = "Percent"

# ScalingRules.select_policy
SELECT_MAX: Final = "Max"
SELECT_MIN: Final = "Min"
SELECT_DISABLED: Final = "Disabled"

# Fallback.strategy
STATIC: Final = "Static"
USE_MAX: Final = "UseMax"
USE_MIN: Final = "UseMin"

# Spec.mode
ACTIVE: Final = "Active"
DRY_RUN: Final = "DryRun"
PAUSED: Final = "Paused"


class ObjectReference(Record):
    """A reference to an object in the same namespace: the scale target, or the object that a metric describes."""

    kind: str = ""
    name: str = ""
    api_version: str = ""


class MetricIdentifier(Record):
    """The name of a metric and an optional selector of its series."""

    name: str = ""
    selector: LabelSelector | None = None

    @property
    def selector_text(self) -> str:
        """The selector for display, such as ``queue=orders``; empty if all series are selected."""
        selector = self.selector
        if selector is None:
            return ""
        if selector.match_expressions:
            return format_label_selector(selector)
        # The common case is formatted without parsing, because every reconcile names its metrics.
        return ",".join([f"{key}={value}" for key, value in sorted(selector.match_labels.items())])

    def __str__(self) -> str:
        text = self.selector_text
        return f"{self.name}{{{text}}}" if text else self.name


class MetricTarget(Record):
    """The target value of a metric. For some metric types upstream uses the field that is set, and ignores ``type``."""

    type: str = ""
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: Int32 | None = None


class ResourceSource(Record):
    """A resource (cpu, memory, …) of the target's pods, summed over their containers."""

    name: str = ""
    target: MetricTarget = MetricTarget()


class ContainerResourceSource(Record):
    """A resource of one named container in each of the target's pods."""

    name: str = ""
    target: MetricTarget = MetricTarget()
    container: str = ""


class PodsSource(Record):
    """A custom metric of each of the target's pods."""

    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()


class ObjectSource(Record):
    """A custom metric of one Kubernetes object."""

    described_object: ObjectReference = ObjectReference()
    target: MetricTarget = MetricTarget()
    metric: MetricIdentifier = MetricIdentifier()


class Fallback(Record):
    """The replica count that replaces an external metric after it has failed for a while (KEP-5679)."""

    replicas: Int32 | None = None
    """The replica count to propose. Required; ``None`` lets validation report that it is missing."""

    failure_duration_seconds: Int64 | None = None
    """How long reads must have failed without interruption. Default 180."""

    strategy: str | None = None
    """``Static``: propose ``replicas``. ``UseMax`` or ``UseMin``: propose the larger or the smaller of ``replicas`` and
    the replicas that the target had when the fallback became active."""


class ExternalSource(Record):
    """A metric from outside the cluster, such as the length of a queue."""

    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()
    fallback: Fallback | None = None


class Metric(Record):
    """One entry of ``spec.metrics``: a type and the source of that type."""

    type: str = ""
    object: ObjectSource | None = None
    pods: PodsSource | None = None
    resource: ResourceSource | None = None
    container_resource: ContainerResourceSource | None = None
    external: ExternalSource | None = None


class Policy(Record):
    """A limit on the change within ``period_seconds``: ``value`` pods, or ``value`` percent of the replicas."""

    type: str = ""
    value: Int32 = 0
    period_seconds: Int32 = 0


class ScalingRules(Record):
    """Scaling rules of one direction."""

    stabilization_window_seconds: Int32 | None = None
    select_policy: str | None = None
    policies: tuple[Policy, ...] | None = None
    tolerance: Quantity | None = None


class Behavior(Record):
    """Scaling rules of both directions. An absent behavior has no defaults: upstream then uses another algorithm."""

    scale_up: ScalingRules | None = None
    scale_down: ScalingRules | None = None


class Spec(Record):
    """The desired scaling of one target."""

    scale_target_ref: ObjectReference = ObjectReference()
    min_replicas: Int32 | None = None
    max_replicas: Int32 = 0
    metrics: tuple[Metric, ...] | None = None
    behavior: Behavior | None = None

    mode: str | None = None
    """``Active`` (default): scale. ``DryRun``: only report. ``Paused``: only report, until ``paused_until``."""

    paused_until: Time | None = None
    """With ``mode: Paused``: when scaling resumes. If it is not set, scaling resumes when the mode is changed."""
