"""Samples as an ExternalMetricValueList or as a Table, in JSON or YAML, sorted: equal samples give equal bytes."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from adapter.sample import Sample
from adapter.server.content_negotiation import YAML
from autoscaler.types.record import Record
from autoscaler.values.timestamps import format_rfc3339

GROUP: Final = "external.metrics.k8s.io"
VERSION: Final = "v1beta1"
GROUP_VERSION: Final = f"{GROUP}/{VERSION}"
ROOT: Final = f"/apis/{GROUP_VERSION}"
LIST_KIND: Final = "ExternalMetricValueList"

_COLUMNS: Final = (
    ("Metric", "name", "Name of the metric.", 0),
    ("Value", "", "Current value, as a Kubernetes quantity.", 0),
    ("Labels", "", "Labels of the series.", 1),
    ("Age", "", "Age of the value.", 0),
)
_encode = msgspec.json.Encoder().encode
timestamp = lru_cache(maxsize=1024)(format_rfc3339)  # the samples of a snapshot share few timestamps


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
    value: str = msgspec.field(default_factory=str)  # a plain default would be omitted (omit_defaults)


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
    return ExternalMetricValueList(items=tuple(_item(value) for value in values))


def _item(value: NamedSample) -> ExternalMetricValue:
    sample = value.sample
    return ExternalMetricValue(
        metric_name=value.metric,
        metric_labels=sample.labels if len(sample.labels) < 2 else dict(sorted(sample.labels.items())),
        timestamp=timestamp(sample.at),
        window=window(sample),
        value=quantity(sample.milli),
    )


def table(
    values: Sequence[NamedSample], *, namespace: str, version: str, include: str, now: datetime
) -> dict[str, Any]:
    """Return the list as a Table; ``include`` is the includeObject parameter: None, Metadata or Object."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": {},
        "columnDefinitions": [
            {"name": name, "type": "string", "format": format_, "description": description, "priority": priority}
            for name, format_, description, priority in _COLUMNS
        ],
        "rows": [{"cells": _cells(value, now), "object": _object(value, namespace, include)} for value in values],
    }


def _cells(value: NamedSample, now: datetime) -> list[str]:
    sample = value.sample
    labels = ",".join(f"{key}={label}" for key, label in sorted(sample.labels.items()))
    return [value.metric, quantity(sample.milli), labels or "<none>", _age(now - sample.at)]


def _object(value: NamedSample, namespace: str, include: str) -> object:
    if include == "None":
        return None
    if include == "Object":
        return _item(value)
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": value.metric, "namespace": namespace},
    }


def _age(age: timedelta) -> str:
    seconds = max(int(age.total_seconds()), 0)
    if seconds < 120:
        return f"{seconds}s"
    return f"{seconds // 60}m" if seconds < 7200 else f"{seconds // 3600}h"


def quantity(milli: int) -> str:
    """Return thousandths as a Kubernetes quantity without a suffix other than ``m``.

    An HPA reads ``10P`` as zero, and the same number in plain digits correctly.
    """
    whole, rest = divmod(milli, 1000)
    return f"{milli}m" if rest else str(whole)


def window(sample: Sample) -> int | None:
    """Return the seconds over which a sample was averaged; None for an instant value."""
    return None if sample.window is None else round(sample.window.total_seconds())


def to_bytes(content: object, media: str, *, pretty: bool = False) -> bytes:
    """Encode a document in a media type: YAML, or else JSON."""
    if media == YAML.media:
        return yaml.safe_dump(msgspec.to_builtins(content), sort_keys=False, allow_unicode=True).encode()
    text = _encode(content)
    return msgspec.json.format(text, indent=2) + b"\n" if pretty else text + b"\n"
