"""The list as a Table, so that ``kubectl get`` prints columns."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from adapter.server.serialization import Named, item, quantity

_COLUMNS = (
    ("Metric", "name", "Name of the metric, as an HPA asks for it.", 0),
    ("Value", "", "The number now, as a Kubernetes quantity.", 0),
    ("Labels", "", "Labels of the series.", 1),
    ("Age", "", "How long ago the number was taken.", 0),
)


def table(values: Sequence[Named], *, namespace: str, version: str, include: str, now: datetime) -> dict[str, Any]:
    """Say the list as a Table; ``include`` is None, Metadata or Object, as kubectl asks."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": {},
        "columnDefinitions": [
            {"name": name, "type": "string", "format": form, "description": says, "priority": priority}
            for name, form, says, priority in _COLUMNS
        ],
        "rows": [{"cells": _cells(value, now), "object": _object(value, namespace, include)} for value in values],
    }


def _cells(value: Named, now: datetime) -> list[str]:
    sample = value.sample
    labels = ",".join(f"{key}={label}" for key, label in sorted(sample.labels.items()))
    return [value.metric, quantity(sample.milli), labels or "<none>", _age(now - sample.at)]


def _object(value: Named, namespace: str, include: str) -> object:
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
