"""What the metrics APIs respond in a simulation: the values of the workload model as readings."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import Final

from autoscaler.readings import (
    MetricsApi,
    PodUsage,
    PodValue,
    api_failure,
    read_external,
    read_pods,
    read_resource,
)
from autoscaler.types.observation import FailureClass, ObjectReading, Pod, Reading
from autoscaler.types.spec import EXTERNAL, OBJECT, Metric

_SAMPLE_WINDOW: Final = timedelta(seconds=30)
"""The window of a pod's sample, as metrics-server has it; it matters for the CPU of pods that have just started."""

UNREACHABLE: Final = {api: api_failure(api, "outage of the simulation", FailureClass.UNREACHABLE) for api in MetricsApi}


def reading_of(metric: Metric, milli: int | None, pods: Sequence[Pod], ready: int, now: datetime) -> Reading:
    """Return the reading of a metric with this value; None is a gap in the history.

    The value of a metric of pods is that of each ready pod.
    """
    if metric.type == EXTERNAL:
        return read_external(() if milli is None else (milli,), now)
    if metric.type == OBJECT:
        return UNREACHABLE[MetricsApi.CUSTOM] if milli is None else ObjectReading(milli, now)
    named = () if milli is None else pods[:ready]
    if metric.pods is not None:
        return read_pods([PodValue(pod.name, milli or 0, now, _SAMPLE_WINDOW) for pod in named])
    usage = {"": {"": milli or 0}}  # the value is already that of the resource, or of the container
    return read_resource([PodUsage(pod.name, usage, now, _SAMPLE_WINDOW) for pod in named], "")


def outage_of(metric: Metric) -> Reading:
    """Return the reading of a metric that cannot be read."""
    if metric.type == EXTERNAL:
        return UNREACHABLE[MetricsApi.EXTERNAL]
    is_custom = metric.pods is not None or metric.object is not None
    return UNREACHABLE[MetricsApi.CUSTOM if is_custom else MetricsApi.RESOURCE]


def per_replica(milli: int | None, ready: int) -> int | None:
    """Return a total divided by the ready replicas, rounded up as quantities are; without replicas the total."""
    return None if milli is None else ceil(milli / max(ready, 1))
