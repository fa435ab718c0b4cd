"""The definition around the schema: names, version, subresources, and the columns of `kubectl get`."""

from typing import Any, Final

import yaml

from autoscaler.types.spec import Spec
from autoscaler.types.status import Status
from tools.crd.descriptions import ABOUT, ABOUT_SPEC, ABOUT_STATUS
from tools.crd.schema import schema_of

_HEAD: Final = (
    "# Made by `make manifests` from autoscaler/types and tools/crd; a test holds them together. Do not edit.\n"
)

_COLUMNS: Final = (
    ("Target", "string", ".spec.scaleTargetRef.name", 0, "The workload that is scaled."),
    ("Kind", "string", ".spec.scaleTargetRef.kind", 1, "The kind of that workload."),
    ("MinPods", "integer", ".spec.minReplicas", 0, "It is never scaled below this."),
    ("MaxPods", "integer", ".spec.maxReplicas", 0, "It is never scaled above this."),
    ("Replicas", "integer", ".status.currentReplicas", 0, "How many it had at the last look."),
    ("Desired", "integer", ".status.desiredReplicas", 0, "How many it should have."),
    ("Able", "string", '.status.conditions[?(@.type=="AbleToScale")].status', 1, "Whether it can be scaled."),
    (
        "Active",
        "string",
        '.status.conditions[?(@.type=="ScalingActive")].status',
        0,
        "Whether metrics decide its size.",
    ),
    (
        "Fallback",
        "string",
        '.status.conditions[?(@.type=="ExternalMetricFallbackActive")].status',
        0,
        "Whether the fallback of an unreadable metric speaks for it; empty where none is configured.",
    ),
    ("Mode", "string", ".spec.mode", 1, "Active, DryRun or Paused."),
    ("Age", "date", ".metadata.creationTimestamp", 0, "How long it has existed."),
)


def definition() -> dict[str, Any]:
    """Make the CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "podautoscalers.steadyscale.dev"},
        "spec": {
            "group": "steadyscale.dev",
            "names": {
                "kind": "PodAutoscaler",
                "listKind": "PodAutoscalerList",
                "plural": "podautoscalers",
                "singular": "podautoscaler",
                "shortNames": ["spa"],
                "categories": ["all"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1beta1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_column(*column) for column in _COLUMNS],
                    "schema": {"openAPIV3Schema": _root()},
                }
            ],
        },
    }


def printed() -> str:
    """Print it as the file that is applied."""
    return _HEAD + yaml.dump(definition(), Dumper=_Plain, sort_keys=False, width=118, allow_unicode=True)


def _root() -> dict[str, Any]:
    return {
        "description": ABOUT,
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {"description": ABOUT_SPEC, **schema_of(Spec, strict=True)},
            "status": {"description": ABOUT_STATUS, **_status()},
        },
    }


def _status() -> dict[str, Any]:
    status = schema_of(Status, strict=False)
    conditions = status["properties"]["conditions"]
    conditions |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    return status


def _column(name: str, kind: str, path: str, priority: int, words: str) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": kind, "jsonPath": path, "description": words}
    return {**column, "priority": priority} if priority else column


class _Plain(yaml.SafeDumper):
    """Writes every value where it stands, without anchors: not every reader of a manifest knows them."""

    def ignore_aliases(self, data: object) -> bool:
        """Repeat what occurs twice."""
        del data
        return True
