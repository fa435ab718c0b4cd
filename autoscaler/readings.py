"""Converts responses of the metrics APIs to readings, as upstream's metrics client does.

Containers of a pod are summed, pods without a value are omitted, and a response without items is an error. Messages
have upstream's text, because they appear in conditions and events.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from autoscaler.types.observation import (
    ExternalReading,
    FailureClass,
    PodReading,
    PodSample,
    UnavailableReading,
)
from autoscaler.types.record import Record
from autoscaler.values.arithmetic import wrap64
from autoscaler.values.quantity import Quantity
from autoscaler.values.timestamps import parse_rfc3339


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


_CUSTOM_METRIC_WINDOW: Final = timedelta(seconds=60)
"""Upstream's window for custom metrics without one."""

_ZERO_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)
"""Kubernetes' zero time, for an item without a timestamp."""

_DURATION_PART: Final = re.compile(r"(?<![0-9.])([0-9.]++)(h|ms|m|s|us|µs|ns)")
_UNIT_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def decode_usage(item: Mapping[str, Any]) -> PodUsage:
    return PodUsage(
        pod=item["metadata"]["name"],
        containers={
            container["name"]: {
                resource: parse_milli(text) for resource, text in (container.get("usage") or {}).items()
            }
            for container in item.get("containers") or ()
        },
        at=timestamp_of(item),
        window=_duration(str(item.get("window") or "")),
    )


def decode_pod_value(item: Mapping[str, Any]) -> PodValue:
    """Decode an item of the custom metrics API; v1beta1 and v1beta2 name the window differently."""
    seconds = item.get("windowSeconds", item.get("window"))
    window = None if seconds is None else timedelta(seconds=int(seconds))
    return PodValue(item["describedObject"]["name"], parse_milli(item["value"]), timestamp_of(item), window)


def timestamp_of(item: Mapping[str, Any]) -> datetime:
    return parse_rfc3339(item.get("timestamp")) or _ZERO_TIME


def parse_milli(number: object) -> int:
    return Quantity.parse(str(number)).milli()


def _duration(text: str) -> timedelta:
    """Parse a duration in Go's format: ``1m30s``."""
    return timedelta(seconds=sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION_PART.findall(text)))


def api_failure(
    api: MetricsApi, error: str, failure: FailureClass = FailureClass.API_UNAVAILABLE
) -> UnavailableReading:
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
    if not items:
        return _no_metrics(MetricsApi.CUSTOM)
    samples = {
        item.pod: PodSample(item.milli, item.at, _CUSTOM_METRIC_WINDOW if item.window is None else item.window)
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
