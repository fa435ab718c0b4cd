"""What the metrics APIs answer becomes a reading: containers summed, pods without a number left out, nothing an error.

The words are those of upstream's metrics client, because they end up in conditions and events.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from autoscaler.types.observation import (
    ExternalReading,
    FailureClass,
    ObjectReading,
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
    """One pod in an answer of the resource metrics API: usage in milli, by container and resource."""

    pod: str
    containers: Mapping[str, Mapping[str, int]]
    at: datetime
    window: timedelta


class PodValue(Record):
    """One pod in an answer of the custom metrics API."""

    pod: str
    milli: int
    at: datetime
    window: timedelta | None = None


WINDOW_OF_CUSTOM_METRICS = timedelta(seconds=60)
"""What upstream assumes where a custom metric says nothing of its window."""


def failed(api: MetricsApi, error: str, failure: FailureClass = FailureClass.API_UNAVAILABLE) -> UnavailableReading:
    """Say that an API did not answer."""
    return UnavailableReading(f"unable to fetch metrics from {api} metrics API: {error}", failure)


def read_resource(items: Sequence[PodUsage], resource: str, container: str = "") -> PodReading | UnavailableReading:
    """Read one resource of each pod, whole or of one container."""
    if not items:
        return _nothing_from(MetricsApi.RESOURCE)
    samples: dict[str, PodSample] = {}
    for item in items:
        milli = _usage(item, resource, container)
        if milli is not None:
            samples[item.pod] = PodSample(milli, item.at, item.window)
    return PodReading(samples, items[0].at)


def read_pods(items: Sequence[PodValue]) -> PodReading | UnavailableReading:
    """Read a custom metric of each pod."""
    if not items:
        return _nothing_from(MetricsApi.CUSTOM)
    samples = {
        item.pod: PodSample(item.milli, item.at, WINDOW_OF_CUSTOM_METRICS if item.window is None else item.window)
        for item in items
    }
    return PodReading(samples, items[0].at)


def read_object(milli: int, at: datetime) -> ObjectReading:
    """Read a custom metric of one object."""
    return ObjectReading(milli, at)


def read_external(values: Iterable[int], at: datetime) -> ExternalReading | UnavailableReading:
    """Read an external metric's series; none at all is an error, not zero."""
    milli = tuple(values)
    return ExternalReading(milli, at) if milli else _nothing_from(MetricsApi.EXTERNAL)


def _usage(item: PodUsage, resource: str, container: str) -> int | None:
    if container:
        return item.containers.get(container, {}).get(resource)
    if not item.containers or any(resource not in usage for usage in item.containers.values()):
        return None
    return wrap64(sum(usage[resource] for usage in item.containers.values()))


def _nothing_from(api: MetricsApi) -> UnavailableReading:
    return UnavailableReading(f"no metrics returned from {api} metrics API", FailureClass.NO_SERIES)
