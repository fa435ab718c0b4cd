"""Converts responses of the metrics APIs to readings, as upstream's metrics client does.

Containers of a pod are summed, pods without a value are omitted, and a response without items is an error. Messages
have upstream's text, because they appear in conditions and events.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from autoscaler.types.observation import (
    ExternalReading,
    FailureClass,
    PodReading,
    PodSample,
    UnavailableReading,
)
from autoscaler.types.record import Record
from autoscaler.values.arithmetic import wrap64


class MetricsApi(StrEnum):
    """The three APIs that serve metrics in a cluster."""

    RESOURCE = "resource"
    CUSTOM = "custom"
    EXTERNAL = "external"


class PodUsage(Record):
    """A pod in a response of the resource metrics API: usage in milli-units, by container and resource."""

    pod: str
    containers: Mapping[str, Mapping[str, int]]
    at: datetime
    window: timedelta


class PodValue(Record):
    """A pod in a response of the custom metrics API."""

    pod: str
    milli: int
    at: datetime
    window: timedelta | None = None


DEFAULT_CUSTOM_METRIC_WINDOW = timedelta(seconds=60)
"""Upstream's window for custom metrics without one."""


def api_failure(
    api: MetricsApi, error: str, failure: FailureClass = FailureClass.API_UNAVAILABLE
) -> UnavailableReading:
    """Return the reading for a failed request to a metrics API."""
    return UnavailableReading(f"unable to fetch metrics from {api} metrics API: {error}", failure)


def read_resource(items: Sequence[PodUsage], resource: str, container: str = "") -> PodReading | UnavailableReading:
    """Return the usage of a resource by each pod, or by one container of each pod."""
    if not items:
        return _no_metrics(MetricsApi.RESOURCE)
    samples: dict[str, PodSample] = {}
    for item in items:
        milli = _usage(item, resource, container)
        if milli is not None:
            samples[item.pod] = PodSample(milli, item.at, item.window)
    return PodReading(samples, items[0].at)


def read_pods(items: Sequence[PodValue]) -> PodReading | UnavailableReading:
    """Return the values of a custom metric by pod."""
    if not items:
        return _no_metrics(MetricsApi.CUSTOM)
    samples = {
        item.pod: PodSample(item.milli, item.at, DEFAULT_CUSTOM_METRIC_WINDOW if item.window is None else item.window)
        for item in items
    }
    return PodReading(samples, items[0].at)


def read_external(values: Iterable[int], at: datetime) -> ExternalReading | UnavailableReading:
    """Return the values of an external metric's series; no series is an error, not zero."""
    milli = tuple(values)
    return ExternalReading(milli, at) if milli else _no_metrics(MetricsApi.EXTERNAL)


def _usage(item: PodUsage, resource: str, container: str) -> int | None:
    if container:
        return item.containers.get(container, {}).get(resource)
    if not item.containers or any(resource not in usage for usage in item.containers.values()):
        return None
    return wrap64(sum(usage[resource] for usage in item.containers.values()))


def _no_metrics(api: MetricsApi) -> UnavailableReading:
    return UnavailableReading(f"no metrics returned from {api} metrics API", FailureClass.NO_SERIES)
