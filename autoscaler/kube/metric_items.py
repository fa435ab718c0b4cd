"""Decodes the items in responses of the three metrics APIs."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from autoscaler.kube.client import Json
from autoscaler.kube.pod import parse_timestamp
from autoscaler.readings import PodUsage, PodValue
from autoscaler.values.quantity import Quantity

_ZERO_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)
"""Kubernetes' zero time, for an item without a timestamp."""

_PART: Final = re.compile(r"([0-9.]+)(h|ms|m|s|us|µs|ns)")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def items_of(response: Json) -> Sequence[Json]:
    """Return the items of a response."""
    return response.get("items") or ()


def decode_usage(item: Json) -> PodUsage:
    """Decode an item of the resource metrics API."""
    return PodUsage(
        pod=item["metadata"]["name"],
        containers={
            container["name"]: {resource: milli(text) for resource, text in (container.get("usage") or {}).items()}
            for container in item.get("containers") or ()
        },
        at=timestamp_of(item),
        window=_duration(str(item.get("window") or "")),
    )


def decode_pod_value(item: Json) -> PodValue:
    """Decode an item of the custom metrics API; v1beta1 and v1beta2 name the window differently."""
    seconds = item.get("windowSeconds", item.get("window"))
    window = None if seconds is None else timedelta(seconds=int(seconds))
    return PodValue(item["describedObject"]["name"], milli(item["value"]), timestamp_of(item), window)


def timestamp_of(item: Json) -> datetime:
    """Return the timestamp of an item."""
    return parse_timestamp(item.get("timestamp")) or _ZERO_TIME


def milli(number: object) -> int:
    """Parse a quantity as milli-units."""
    return Quantity.parse(str(number)).milli()


def _duration(text: str) -> timedelta:
    """Parse a duration in Go's format: ``1m30s``."""
    return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text)))
