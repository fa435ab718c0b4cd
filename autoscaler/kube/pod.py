"""A pod as the API server sends it becomes what the arithmetic needs of one."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from autoscaler.kube.client import Json
from autoscaler.types.observation import Container, Pod
from autoscaler.values.quantity import Quantity


def decode_pod(content: Json) -> Pod:
    """Keep a pod's name, phase, labels, requests and readiness; drop the rest."""
    metadata, spec, status = content["metadata"], content.get("spec") or {}, content.get("status") or {}
    ready = next((one for one in status.get("conditions") or () if one.get("type") == "Ready"), None)
    whole = (spec.get("resources") or {}).get("requests")
    return Pod(
        name=metadata["name"],
        phase=status.get("phase", ""),
        labels=metadata.get("labels") or {},
        containers=_containers(spec.get("containers")),
        init_containers=_containers(spec.get("initContainers")),
        requests=_quantities(whole) if whole else None,
        overhead=_quantities(spec["overhead"]) if spec.get("overhead") else None,
        ready=ready and ready.get("status"),
        ready_since=moment(ready.get("lastTransitionTime")) if ready else None,
        started=moment(status.get("startTime")),
        terminating="deletionTimestamp" in metadata,
    )


def moment(text: str | None) -> datetime | None:
    """Read a time as Kubernetes prints it, where there is one."""
    return datetime.fromisoformat(text) if text else None


def _containers(given: list[Json] | None) -> tuple[Container, ...]:
    return tuple(
        Container(one["name"], _quantities((one.get("resources") or {}).get("requests")), one.get("restartPolicy"))
        for one in given or ()
    )


def _quantities(given: Mapping[str, Any] | None) -> dict[str, Quantity]:
    return {name: Quantity.parse(str(text)) for name, text in (given or {}).items()}
