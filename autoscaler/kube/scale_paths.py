"""Where a kind keeps what its scale subresource shows, so that a watched object says it without being asked.

The API server makes a Scale out of an object by fixed rules: for the built-in kinds in code, for custom ones by the
paths in their definition. The same rules are here, with the same words where they fail.
"""

from typing import Any, Final

import msgspec

from autoscaler.kube.client import Json
from autoscaler.types.observation import ScaleTarget, TargetUnreadable
from autoscaler.types.record import Record
from autoscaler.values.requirement import DOUBLE_EQUALS, EQUALS, GREATER_THAN, LESS_THAN, NOT_EQUALS, NOT_IN
from autoscaler.values.selector import LabelSelector, Requirement, Selector, SelectorError, from_label_selector, parse

_PLAIN: Final = {DOUBLE_EQUALS: EQUALS, NOT_EQUALS: NOT_IN}
"""Two operators are written another way by a client that reads a selector and prints it again."""

BUILT_IN: Final = {("apps", kind) for kind in ("Deployment", "StatefulSet", "ReplicaSet")}


class ScalePaths(Record):
    """Where a custom kind keeps its replicas, as in its definition: ``.spec.replicas`` and the like."""

    spec_replicas: str
    status_replicas: str
    selector: str | None = None


class SeenScale(Record):
    """A target as watched: its scale, and the version and identity that a write has to name."""

    scale: ScaleTarget | TargetUnreadable
    version: str
    uid: str


def paths_in(definition: Json, version: str) -> ScalePaths | None:
    """Find the paths in a CustomResourceDefinition; None: that version has no scale subresource."""
    for one in definition["spec"]["versions"]:
        scale = (one.get("subresources") or {}).get("scale")
        if one["name"] == version and scale:
            return ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath"))
    return None


def built_in_scale(content: Json) -> SeenScale:
    """Make the scale of a Deployment, StatefulSet or ReplicaSet."""
    spec, status = content.get("spec") or {}, content.get("status") or {}
    selector = _printed(spec.get("selector"))
    return _seen(content, ScaleTarget(spec.get("replicas", 1), status.get("replicas", 0), selector))


def custom_scale(content: Json, paths: ScalePaths) -> SeenScale:
    """Make the scale of a custom resource."""
    replicas = _at(content, paths.spec_replicas)
    if not isinstance(replicas, int):
        problem = f'Internal error occurred: the spec replicas field "{paths.spec_replicas}" does not exist'
        return _seen(content, TargetUnreadable(problem))
    have = _at(content, paths.status_replicas)
    selector = _at(content, paths.selector) if paths.selector else None
    scale = scale_target(replicas, have if isinstance(have, int) else 0, selector if isinstance(selector, str) else "")
    return _seen(content, scale)


def decode_scale(content: Json) -> SeenScale:
    """Make sense of a Scale as the subresource gives it; replicas of zero are left out there."""
    spec, status = content.get("spec") or {}, content.get("status") or {}
    return _seen(
        content, scale_target(spec.get("replicas", 0), status.get("replicas", 0), status.get("selector") or "")
    )


def scale_target(replicas: int, status_replicas: int, selector: str) -> ScaleTarget | TargetUnreadable:
    """Put a scale together, its selector read and printed again as upstream's client does."""
    try:
        parsed = parse(selector)
    except SelectorError as error:
        return TargetUnreadable(f'couldn\'t parse the selector string "{selector}": {error}')
    for requirement in parsed.requirements:
        if requirement.operator in {GREATER_THAN, LESS_THAN}:
            return TargetUnreadable(f'"{requirement.operator}" isn\'t supported in label selectors')
    plain = (Requirement(one.key, _PLAIN.get(one.operator, one.operator), one.values) for one in parsed.requirements)
    return ScaleTarget(replicas, status_replicas, str(Selector(plain)))


def _seen(content: Json, scale: ScaleTarget | TargetUnreadable) -> SeenScale:
    metadata = content["metadata"]
    return SeenScale(scale, metadata.get("resourceVersion", ""), metadata.get("uid", ""))


def _printed(selector: Json | None) -> str:
    try:
        parsed = msgspec.convert(selector, LabelSelector | None)
        return str(from_label_selector(parsed))
    except (msgspec.ValidationError, SelectorError):
        return str(Selector())


def _at(content: Json, path: str) -> Any:  # noqa: ANN401 - whatever the object holds there
    """Walk a simple dotted path, the only kind that a definition may have."""
    found: Any = content
    for step in path.removeprefix(".").split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found
