"""The scale subresource: the Scale of an object, and a Scale applied to an object."""

import copy
from typing import Any

from adapter.fakecluster import api_errors
from adapter.fakecluster.kinds import Json, Kind
from autoscaler.kube.scale_paths import ScalePaths, built_in_scale, value_at
from autoscaler.types.observation import ScaleTarget


def show(kind: Kind, content: Json) -> Json:
    """Return the Scale of an object; zero replicas are omitted, as in Go's encoding."""
    paths = _paths(kind)
    replicas = value_at(content, paths.spec_replicas)
    if replicas is None:
        problem = f'the spec replicas field "{paths.spec_replicas}" does not exist'
        raise api_errors.ApiError(500, "InternalError", f"Internal error occurred: {problem}")
    selector = _selector(kind, content)
    status: Json = {"replicas": value_at(content, paths.status_replicas) or 0}
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: content["metadata"][key] for key in fields if key in content["metadata"]},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {**status, **({"selector": selector} if selector else {})},
    }


def apply(kind: Kind, content: Json, scale: Json) -> Json:
    """Return a copy of the object with the replicas of the Scale."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        problem = f"spec.replicas: Invalid value: {replicas}: must be greater than or equal to 0"
        message = f'Scale.autoscaling "{content["metadata"]["name"]}" is invalid: {problem}'
        raise api_errors.ApiError(422, "Invalid", message)
    changed = copy.deepcopy(content)
    set_field(changed, _paths(kind).spec_replicas, replicas)
    return changed


def set_field(content: Json, path: str, value: int) -> None:
    *parents, last = path.removeprefix(".").split(".")
    target: Any = content
    for key in parents:
        target = target.setdefault(key, {})
    target[last] = value


def _selector(kind: Kind, content: Json) -> str:
    paths = _paths(kind)
    if kind.is_custom:
        selector = value_at(content, paths.selector) if paths.selector else None
        return selector if isinstance(selector, str) else ""
    if kind.resource == ("", "replicationcontrollers"):  # its selector is a map of labels, not a LabelSelector
        content = {**content, "spec": {**content["spec"], "selector": {"matchLabels": content["spec"]["selector"]}}}
    target = built_in_scale(content).scale
    return target.selector if isinstance(target, ScaleTarget) else ""


def _paths(kind: Kind) -> ScalePaths:
    if kind.scale is None:
        raise api_errors.unknown_resource()
    return kind.scale
