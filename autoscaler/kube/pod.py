"""Decodes pods, keeping only the fields that the algorithm uses."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from autoscaler.kube.client import Json
from autoscaler.types.observation import Container, Pod
from autoscaler.types.status import condition_of
from autoscaler.values.quantity import Quantity


def decode_pod(content: Json) -> Pod:
    """Decode name, phase, labels, requests and readiness of a pod."""
    metadata, spec, status = content["metadata"], content.get("spec") or {}, content.get("status") or {}
    ready = condition_of(status, "Ready")
    requests = (spec.get("resources") or {}).get("requests")
    return Pod(
        name=metadata["name"],
        phase=status.get("phase", ""),
        labels=metadata.get("labels") or {},
        containers=_containers(spec.get("containers")),
        init_containers=_containers(spec.get("initContainers")),
        requests=_quantities(requests) if requests else None,
        overhead=_quantities(spec["overhead"]) if spec.get("overhead") else None,
        ready=ready.get("status") if ready else None,
        ready_since=parse_timestamp(ready.get("lastTransitionTime")) if ready else None,
        started=parse_timestamp(status.get("startTime")),
        terminating="deletionTimestamp" in metadata,
    )


def parse_timestamp(text: str | None) -> datetime | None:
    """Parse a Kubernetes timestamp; None if it is absent."""
    return datetime.fromisoformat(text) if text else None


def _containers(containers: list[Json] | None) -> tuple[Container, ...]:
    return tuple(
        Container(
            entry["name"], _quantities((entry.get("resources") or {}).get("requests")), entry.get("restartPolicy")
        )
        for entry in containers or ()
    )


def _quantities(quantities: Mapping[str, Any] | None) -> dict[str, Quantity]:
    return {name: Quantity.parse(str(text)) for name, text in (quantities or {}).items()}
