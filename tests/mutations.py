"""Seeded mutations of valid objects: wrong types, missing and unknown fields, invalid values, values at the bounds."""

import copy
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
SELECTOR = {
    "matchLabels": {"queue": "orders"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["a", "b"]},
        {"key": "old", "operator": "DoesNotExist"},
    ],
}
METRICS: list[Any] = [
    {
        "type": "External",
        "external": {
            "metric": {"name": "queue", "selector": SELECTOR},
            "target": {"type": "AverageValue", "averageValue": "30"},
            "fallback": {"replicas": 5, "failureDurationSeconds": 300, "strategy": "UseMax"},
        },
    },
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
    {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": 5}}},
    {
        "type": "Object",
        "object": {
            "metric": {"name": "hits"},
            "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"},
            "target": {"type": "Value", "value": "2k"},
        },
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "memory",
            "container": "app",
            "target": {"type": "AverageValue", "averageValue": "1Gi"},
        },
    },
]
RULES = {
    "stabilizationWindowSeconds": 60,
    "selectPolicy": "Min",
    "policies": [{"type": "Pods", "value": 2, "periodSeconds": 30}],
    "tolerance": "0.05",
}
POD_AUTOSCALER: dict[str, Any] = {
    "apiVersion": "steadyscale.dev/v1beta1",
    "kind": "PodAutoscaler",
    "metadata": {"name": "web", "labels": {"team": "shop"}, "annotations": {"note": "x"}},
    "spec": {
        "scaleTargetRef": REFERENCE,
        "minReplicas": 0,
        "maxReplicas": 10,
        "mode": "Paused",
        "pausedUntil": "2026-12-01T08:00:00Z",
        "metrics": METRICS,
        "behavior": {"scaleUp": RULES, "scaleDown": copy.deepcopy(RULES)},
    },
}
EXTERNAL_METRICS: tuple[dict[str, Any], ...] = tuple(
    {
        "apiVersion": "steadyscale.dev/v1beta1",
        "kind": "ExternalMetric",
        "metadata": {"name": "queue", "labels": {"team": "shop"}},
        "spec": {
            **source,
            "metric": "orders",
            "aliases": ["waiting", "pending"],
            "labels": ["queue"],
            "aggregation": "max",
            "interval": "30s",
            "maxSampleAge": "2m",
            "deadline": "10s",
            "onEmpty": "zero",
            "onNaN": "skip",
            "onOutOfRange": "error",
            "onTooOld": "skip",
        },
    }
    for source in (
        {"backend": "main", "query": "sum(x)"},
        {"backend": "broker", "parameters": {"queue": "orders", "measure": "ready", "topics": ["a"]}},
        {"static": [{"value": 5.5, "labels": {"queue": "orders"}, "age": "5s"}]},
    )
)

_TEXTS: tuple[str, ...] = (
    "", " ", "5", "ten", "x" * 64, "x" * 254, "x" * 318, "a/b", "a/b/c", "..", "%", "500m", "0", "-1", "1\n",
    "UPPER", "v1", "apps/v1", "cpu", "hugepages-2Mi", "status", "ReplicationController", "Disabled", "Exists", "In",
    "sum", "zero", "Active", "DryRun", "Value", "Utilization", "External", "Resource", "1s", "0s", "61s", "90m",
    "2026-12-01", "2026-12-01T08:00:00Z", "2026-12-01t08:00:00z", "2026-12-01T08:00:00,5Z",
    "2026-12-01T08:00:00+0100", "2026-12-01T08:00:00.5+01:00", "2026-12-31T24:00:00Z", "2026-12-01 08:00:00Z",
)  # fmt: skip
_NUMBERS = (0, 1, -1, 0.5, 64, 180, 1801, 3601, 2**31 - 1, 2**31, 2**63, -(2**31) - 1, 31536001)
_CONTAINERS: tuple[Any, ...] = ([], {}, [None], [1], ["a", "a"], {"a": None}, {"a": 1}, {"a": "b"}, [[]], [{}])
_VALUES: tuple[Any, ...] = (None, True, False, *_NUMBERS, *_TEXTS, *_CONTAINERS)


class Mutation(NamedTuple):
    """A change of a document."""

    path: str
    description: str


def mutated(document: dict[str, Any], source: random.Random, count: int) -> tuple[dict[str, Any], list[Mutation]]:
    """Return a copy of a document with this many random changes of its metadata and spec."""
    copied = copy.deepcopy(document)
    return copied, [_mutate(copied, source) for _ in range(count)]


def _mutate(document: dict[str, Any], source: random.Random) -> Mutation:
    places = [
        place
        for part in ("spec", "metadata")
        for place in _places(document.get(part), document, part, part)
        if place[2] != "metadata" and part in document
    ]
    if not places:
        return Mutation("", "nothing left to change")
    container, key, path = source.choice(places)
    match source.randrange(6):
        case 0 if isinstance(container, dict):
            del container[key]
            return Mutation(path, "removed")
        case 1 if isinstance(container[key], dict):
            container[key]["unknown"] = source.choice(_VALUES)
            return Mutation(f"{path}.unknown", "added")
        case 2 if isinstance(container[key], list) and container[key]:
            container[key] *= source.choice((2, 40))
            return Mutation(path, "repeated")
        case _:
            container[key] = copy.deepcopy(source.choice(_VALUES))
            return Mutation(path, f"set to {container[key]!r}"[:80])


def _places(value: Any, container: Any, key: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    yield container, key, path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _places(inner, value, name, f"{path}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _places(inner, value, index, f"{path}[{index}]")
