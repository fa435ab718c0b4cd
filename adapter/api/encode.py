"""Samples as an ExternalMetricValueList: JSON, YAML or a Table; always in the same order, so the same bytes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import yaml

from adapter.api import negotiate
from adapter.api.group import GROUP_VERSION, LIST_KIND
from adapter.sample import Sample
from autoscaler.types.record import Record

_encode = msgspec.json.Encoder().encode


class Value(Record, frozen=True, omit_defaults=False):
    """One item of the list, in its wire form but for the time."""

    metric_name: str
    metric_labels: Mapping[str, str]
    at: datetime
    value: str
    window: int | None = None


def values_of(metric: str, samples: Iterable[Sample]) -> list[Value]:
    """Say each sample as an item, ordered by labels."""
    values = [
        Value(
            metric_name=metric,
            metric_labels=dict(sorted(sample.labels.items())),
            at=sample.at,
            value=quantity(sample.milli),
            window=None if sample.window is None else round(sample.window.total_seconds()),
        )
        for sample in samples
    ]
    return sorted(values, key=lambda value: tuple(value.metric_labels.items())) if len(values) > 1 else values


def quantity(milli: int) -> str:
    """Write thousandths as a Kubernetes quantity.

    Never with a suffix beyond ``m``: an HPA reads ``10P`` as nothing, and the same number in plain digits correctly.
    """
    whole, rest = divmod(milli, 1000)
    return f"{milli}m" if rest else str(whole)


def document(values: Sequence[Value]) -> dict[str, Any]:
    """Say the list as a plain document."""
    return {"kind": LIST_KIND, "apiVersion": GROUP_VERSION, "metadata": {}, "items": [item(value) for value in values]}


def item(value: Value) -> dict[str, Any]:
    """Say one value as a plain document."""
    window = {} if value.window is None else {"window": value.window}
    return {
        "metricName": value.metric_name,
        "metricLabels": value.metric_labels,
        "timestamp": f"{value.at:%Y-%m-%dT%H:%M:%SZ}",
        **window,
        "value": value.value,
    }


def to_bytes(content: object, media: str, *, pretty: bool = False) -> bytes:
    """Write a plain document in a media type, JSON unless it is YAML."""
    if media == negotiate.YAML.media:
        return yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode()
    text = _encode(content)
    return msgspec.json.format(text, indent=2) + b"\n" if pretty else text + b"\n"
