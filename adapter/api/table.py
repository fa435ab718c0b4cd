"""The list as a Table, so that ``kubectl get`` prints columns."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from adapter.api.encode import Value, item

_COLUMNS = (
    ("Metric", "name", "Name of the metric, as an HPA asks for it.", 0),
    ("Value", "", "The number now, as a Kubernetes quantity.", 0),
    ("Labels", "", "Labels of the series.", 1),
    ("Age", "", "How long ago the number was taken.", 0),
)


def table(values: Sequence[Value], *, namespace: str, version: str, include: str, now: datetime) -> dict[str, Any]:
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


def _cells(value: Value, now: datetime) -> list[str]:
    labels = ",".join(f"{key}={label}" for key, label in sorted(value.metric_labels.items()))
    return [value.metric_name, value.value, labels or "<none>", _age(now - value.at)]


def _object(value: Value, namespace: str, include: str) -> dict[str, Any] | None:
    if include == "None":
        return None
    if include == "Object":
        return item(value)
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": value.metric_name, "namespace": namespace},
    }


def _age(age: timedelta) -> str:
    seconds = max(int(age.total_seconds()), 0)
    if seconds < 120:
        return f"{seconds}s"
    return f"{seconds // 60}m" if seconds < 7200 else f"{seconds // 3600}h"
