"""The scale subresource: an object shown as a Scale, and a Scale applied to an object."""

import copy
from typing import Any

from adapter.fakecluster import api_errors
from adapter.fakecluster.kinds import Json, Kind
from autoscaler.kube.scale_paths import ScalePaths, built_in_scale
from autoscaler.types.observation import ScaleTarget


def show(kind: Kind, content: Json) -> Json:
    """Make the Scale of an object; zeros are left out of it, as Go does."""
    paths = _paths(kind)
    replicas = _at(content, paths.spec_replicas)
    if replicas is None:
        problem = f'the spec replicas field "{paths.spec_replicas}" does not exist'
        raise api_errors.Refused(500, "InternalError", f"Internal error occurred: {problem}")
    selector = _selector(kind, content)
    status: Json = {"replicas": _at(content, paths.status_replicas) or 0}
    keep = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: content["metadata"][key] for key in keep if key in content["metadata"]},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {**status, **({"selector": selector} if selector else {})},
    }


def apply(kind: Kind, content: Json, scale: Json) -> Json:
    """Write a Scale's replicas into an object."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        problem = f"spec.replicas: Invalid value: {replicas}: must be greater than or equal to 0"
        raise api_errors.Refused(
            422, "Invalid", f'Scale.autoscaling "{content["metadata"]["name"]}" is invalid: {problem}'
        )
    changed = copy.deepcopy(content)
    *way, last = _steps(_paths(kind).spec_replicas)
    place: Any = changed
    for step in way:
        place = place.setdefault(step, {})
    place[last] = replicas
    return changed


def _selector(kind: Kind, content: Json) -> str:
    paths = _paths(kind)
    if kind.is_custom:
        found = _at(content, paths.selector) if paths.selector else None
        return found if isinstance(found, str) else ""
    if kind.resource == ("", "replicationcontrollers"):  # the one kind whose selector is nothing but labels
        content = {**content, "spec": {**content["spec"], "selector": {"matchLabels": content["spec"]["selector"]}}}
    seen = built_in_scale(content).scale
    return seen.selector if isinstance(seen, ScaleTarget) else ""


def _paths(kind: Kind) -> ScalePaths:
    if kind.scale is None:
        raise api_errors.no_such_path()
    return kind.scale


def _at(content: Json, path: str) -> Any:  # noqa: ANN401 - whatever the object holds there
    found: Any = content
    for step in _steps(path):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _steps(path: str) -> list[str]:
    return path.removeprefix(".").split(".")
