"""The current and target values of all metrics as one text, as `kubectl get hpa` shows them in the column TARGETS."""

from itertools import zip_longest
from typing import Final

from autoscaler.types.spec import Metric, MetricTarget, Spec
from autoscaler.types.status import UNREAD, MetricStatus, MetricValue, Status
from autoscaler.values.arithmetic import MIN_INT64
from autoscaler.values.quantity import Quantity

_MAX_SHOWN: Final = 2
_UNKNOWN: Final = "<unknown>"
_NOT_READ: Final = MetricValue()


def format_targets(spec: Spec, status: Status) -> str:
    """Format the first two metrics, such as ``cpu: 50%/80%, 20/30 (avg)``, and the number of further ones."""
    metrics = spec.metrics or ()
    if not metrics:
        return "<none>"
    statuses = (status.current_metrics or ())[: len(metrics)]
    shown = [_format(metric, entry) for metric, entry in zip_longest(metrics[:_MAX_SHOWN], statuses[:_MAX_SHOWN])]
    more = len(metrics) - _MAX_SHOWN
    return ", ".join(shown) + (f" + {more} more..." if more > 0 else "")


def _format(metric: Metric, status: MetricStatus | None) -> str:
    status = status or UNREAD
    if resource := metric.resource or metric.container_resource:
        entry = status.resource or status.container_resource
        return f"{resource.name}: {_resource(resource.target, entry.current if entry else _NOT_READ)}"
    if metric.pods is not None:
        value = status.pods.current if status.pods else _NOT_READ
        return f"{_text(value.average_value)}/{metric.pods.target.average_value}"
    if source := metric.external or metric.object:
        workload = status.external or status.object
        return _workload(source.target, workload.current if workload else _NOT_READ)
    return "<unknown type>"


def _resource(target: MetricTarget, current: MetricValue) -> str:
    if target.average_value is not None:
        return f"{_text(current.average_value)}/{target.average_value}"
    utilization = _UNKNOWN if current.average_utilization is None else f"{current.average_utilization}%"
    return f"{utilization}/{target.average_utilization}%"


def _workload(target: MetricTarget, current: MetricValue) -> str:
    if target.average_value is not None:
        return f"{_text(current.average_value)}/{target.average_value} (avg)"
    return f"{_text(current.value)}/{target.value}"


def _text(value: Quantity | None) -> str:
    """Format a value; the average over zero replicas, which upstream stores as the smallest number, is unknown."""
    return _UNKNOWN if value is None or value.milli() == MIN_INT64 else str(value)
