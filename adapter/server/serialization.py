"""Samples as an ExternalMetricValueList in JSON or YAML, sorted, so that equal samples give equal bytes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import msgspec
import yaml

from adapter.sample import Sample
from adapter.server.content_negotiation import YAML
from adapter.server.group import GROUP_VERSION, LIST_KIND
from autoscaler.types.record import Record
from autoscaler.values.timestamps import format_rfc3339

_encode = msgspec.json.Encoder().encode


class NamedSample(NamedTuple):
    """A sample and the metric name of the request."""

    metric: str
    sample: Sample


class ExternalMetricValue(Record, frozen=True):
    """One item of the list, in wire format."""

    metric_name: str
    metric_labels: Mapping[str, str]
    timestamp: str
    window: int | None = None
    value: str = msgspec.field(
        default_factory=str
    )  # omit_defaults omits only plain defaults: this field is always encoded


class ExternalMetricValueList(Record, frozen=True, omit_defaults=False):
    """The list, in wire format."""

    kind: str = LIST_KIND
    api_version: str = GROUP_VERSION
    metadata: Mapping[str, str] = {}
    items: tuple[ExternalMetricValue, ...] = ()


def named_samples(metric: str, samples: Sequence[Sample]) -> list[NamedSample]:
    """Return the samples of one metric, sorted by their labels."""
    if len(samples) > 1:
        samples = sorted(samples, key=lambda sample: sorted(sample.labels.items()))
    return [NamedSample(metric, sample) for sample in samples]


def document(values: Sequence[NamedSample]) -> ExternalMetricValueList:
    """Return the list in wire format."""
    return ExternalMetricValueList(items=tuple(item(value) for value in values))


def item(value: NamedSample) -> ExternalMetricValue:
    """Return one item in wire format."""
    sample = value.sample
    return ExternalMetricValue(
        metric_name=value.metric,
        metric_labels=sample.labels if len(sample.labels) < 2 else dict(sorted(sample.labels.items())),
        timestamp=timestamp(sample.at),
        window=window(sample),
        value=quantity(sample.milli),
    )


def quantity(milli: int) -> str:
    """Return thousandths as a Kubernetes quantity without a suffix other than ``m``.

    An HPA reads ``10P`` as zero, and the same number in plain digits correctly.
    """
    whole, rest = divmod(milli, 1000)
    return f"{milli}m" if rest else str(whole)


@lru_cache(maxsize=1024)  # the samples of a snapshot share few timestamps
def timestamp(at: datetime) -> str:
    """Return a time as Kubernetes formats it: UTC, whole seconds."""
    return format_rfc3339(at)


def window(sample: Sample) -> int | None:
    """Return the seconds over which a sample was averaged; None for an instant value."""
    return None if sample.window is None else round(sample.window.total_seconds())


def to_bytes(content: object, media: str, *, pretty: bool = False) -> bytes:
    """Encode a document in a media type: YAML, or else JSON."""
    if media == YAML.media:
        return yaml.safe_dump(msgspec.to_builtins(content), sort_keys=False, allow_unicode=True).encode()
    text = _encode(content)
    return msgspec.json.format(text, indent=2) + b"\n" if pretty else text + b"\n"
