"""Samples as an ExternalMetricValueList: JSON or YAML, always in one order, so that the same is the same bytes."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

import msgspec
import yaml

from adapter.sample import Sample
from adapter.server.content_negotiation import YAML
from adapter.server.group import GROUP_VERSION, LIST_KIND
from autoscaler.types.record import Record

_encode = msgspec.json.Encoder().encode


class Named(NamedTuple):
    """A sample, and the name that its metric was asked for by."""

    metric: str
    sample: Sample


class ExternalMetricValue(Record, frozen=True):
    """One item of the list, as it is on the wire."""

    metric_name: str
    metric_labels: Mapping[str, str]
    timestamp: str
    window: int | None = None
    value: str = msgspec.field(default_factory=str)  # a factory's default is never left out


class ExternalMetricValueList(Record, frozen=True, omit_defaults=False):
    """The list, as it is on the wire."""

    kind: str = LIST_KIND
    api_version: str = GROUP_VERSION
    metadata: Mapping[str, str] = {}
    items: tuple[ExternalMetricValue, ...] = ()


def in_order(metric: str, samples: Sequence[Sample]) -> list[Named]:
    """Name the samples of one metric and order them by their labels."""
    if len(samples) > 1:
        samples = sorted(samples, key=lambda sample: sorted(sample.labels.items()))
    return [Named(metric, sample) for sample in samples]


def document(values: Sequence[Named]) -> ExternalMetricValueList:
    """Say the list in its wire form."""
    return ExternalMetricValueList(items=tuple(item(value) for value in values))


def item(value: Named) -> ExternalMetricValue:
    """Say one value in its wire form."""
    sample = value.sample
    return ExternalMetricValue(
        metric_name=value.metric,
        metric_labels=sample.labels if len(sample.labels) < 2 else dict(sorted(sample.labels.items())),
        timestamp=timestamp(sample.at),
        window=window(sample),
        value=quantity(sample.milli),
    )


def quantity(milli: int) -> str:
    """Write thousandths as a Kubernetes quantity.

    Never with a suffix beyond ``m``: an HPA reads ``10P`` as nothing, and the same number in plain digits correctly.
    """
    whole, rest = divmod(milli, 1000)
    return f"{milli}m" if rest else str(whole)


@lru_cache(maxsize=1024)  # a whole snapshot is of one time
def timestamp(at: datetime) -> str:
    """Write a time as Kubernetes does: UTC, whole seconds."""
    return at.astimezone(UTC).isoformat()[:19] + "Z"


def window(sample: Sample) -> int | None:
    """Say what a sample is an average over, in seconds; None if it is of one moment."""
    return None if sample.window is None else round(sample.window.total_seconds())


def to_bytes(content: object, media: str, *, pretty: bool = False) -> bytes:
    """Write a document in a media type, JSON unless it is YAML."""
    if media == YAML.media:
        return yaml.safe_dump(msgspec.to_builtins(content), sort_keys=False, allow_unicode=True).encode()
    text = _encode(content)
    return msgspec.json.format(text, indent=2) + b"\n" if pretty else text + b"\n"
