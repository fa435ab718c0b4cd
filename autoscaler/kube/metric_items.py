"""The answers of the three metrics APIs, decoded item by item."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from autoscaler.kube.client import Json
from autoscaler.kube.pod import moment
from autoscaler.readings import PodUsage, PodValue
from autoscaler.values.quantity import Quantity

_LONG_AGO: Final = datetime(1, 1, 1, tzinfo=UTC)
"""What a time that was left out stands for in Kubernetes."""

_PART: Final = re.compile(r"([0-9.]+)(h|ms|m|s|us|µs|ns)")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def items_of(answer: Json) -> Sequence[Json]:
    """List the items of an answer."""
    return answer.get("items") or ()


def decode_usage(item: Json) -> PodUsage:
    """Decode one pod of the resource metrics API."""
    return PodUsage(
        pod=item["metadata"]["name"],
        containers={
            one["name"]: {resource: milli(text) for resource, text in (one.get("usage") or {}).items()}
            for one in item.get("containers") or ()
        },
        at=moment_of(item),
        window=_duration(str(item.get("window") or "")),
    )


def decode_pod_value(item: Json) -> PodValue:
    """Decode one pod of the custom metrics API, whose two versions name the window differently."""
    seconds = item.get("windowSeconds", item.get("window"))
    window = None if seconds is None else timedelta(seconds=int(seconds))
    return PodValue(item["describedObject"]["name"], milli(item["value"]), moment_of(item), window)


def moment_of(item: Json) -> datetime:
    """Say when an item's number was taken."""
    return moment(item.get("timestamp")) or _LONG_AGO


def milli(number: object) -> int:
    """Read a quantity as thousandths."""
    return Quantity.parse(str(number)).milli()


def _duration(text: str) -> timedelta:
    """Read a duration as Go prints it: ``1m30s``."""
    return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text)))
