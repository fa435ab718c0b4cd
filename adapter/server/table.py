"""The list as a Table, for the columns of ``kubectl get``."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from adapter.server.serialization import NamedSample, item, quantity

_COLUMNS = (
    ("Metric", "name", "Name of the metric.", 0),
    ("Value", "", "Current value, as a Kubernetes quantity.", 0),
    ("Labels", "", "Labels of the series.", 1),
    ("Age", "", "Age of the value.", 0),
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
        return item(value)
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
