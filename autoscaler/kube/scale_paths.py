"""Derives the Scale of a watched object without a request to its scale subresource.

The API server computes a Scale by fixed rules: in code for built-in kinds, by the paths in the
CustomResourceDefinition for custom kinds. This module applies the same rules and has the same error messages.
"""

from typing import Any, Final, TypeGuard

import msgspec

from autoscaler.kube.client import Json
from autoscaler.types.observation import ScaleTarget, UnavailableTarget
from autoscaler.types.record import Record
from autoscaler.values.requirement import DOUBLE_EQUALS, EQUALS, GREATER_THAN, LESS_THAN, NOT_EQUALS, NOT_IN
from autoscaler.values.selector import (
    MAX_REQUIREMENTS,
    LabelSelector,
    Requirement,
    Selector,
    SelectorError,
    from_label_selector,
    parse,
)

_MAX_LENGTH: Final = 8192
"""The longest text of a selector. A parsed selector takes up to a hundred times the memory of its text, and parsing
blocks the event loop; a selector in use has a few hundred characters."""

_TOO_LARGE: Final = UnavailableTarget(
    f"the selector is too large: it may have {MAX_REQUIREMENTS} requirements and {_MAX_LENGTH} characters; "
    "select the pods by fewer labels"
)
"""Kubernetes has no such limits."""

_NORMALIZED_OPERATORS: Final = {DOUBLE_EQUALS: EQUALS, NOT_EQUALS: NOT_IN}
"""Operators that change when client-go parses a selector and prints it again."""

BUILT_IN: Final = {("apps", kind) for kind in ("Deployment", "StatefulSet", "ReplicaSet")}


class ScalePaths(Record):
    """The scale paths of a CustomResourceDefinition, such as ``.spec.replicas``."""

    spec_replicas: str
    status_replicas: str
    selector: str | None = None


class ObservedScale(Record):
    """The scale of a target, with the resourceVersion and uid that a write must contain."""

    scale: ScaleTarget | UnavailableTarget
    resource_version: str
    uid: str


def scale_paths_of(definition: Json, version: str) -> ScalePaths | None:
    """Return the scale paths of a CustomResourceDefinition; None if the version has no scale subresource."""
    for entry in definition["spec"]["versions"]:
        scale = (entry.get("subresources") or {}).get("scale")
        if entry["name"] == version and scale:
            return ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath"))
    return None


def built_in_scale(content: Json) -> ObservedScale:
    """Return the scale of a Deployment, StatefulSet or ReplicaSet."""
    spec, status = content.get("spec") or {}, content.get("status") or {}
    replicas, current = _int32(spec.get("replicas", 1)), _int32(status.get("replicas", 0))
    selector = _selector_text(spec.get("selector"))
    return _observed(content, _TOO_LARGE if selector is None else ScaleTarget(replicas, current, selector))


def custom_scale(content: Json, paths: ScalePaths) -> ObservedScale:
    replicas = value_at(content, paths.spec_replicas)
    if not is_int32(replicas):
        problem = f'Internal error occurred: the spec replicas field "{paths.spec_replicas}" does not exist'
        return _observed(content, UnavailableTarget(problem))
    current = value_at(content, paths.status_replicas)
    selector = value_at(content, paths.selector) if paths.selector else None
    scale = scale_target(replicas, current if is_int32(current) else 0, selector if isinstance(selector, str) else "")
    return _observed(content, scale)


def decode_scale(content: Json) -> ObservedScale:
    """Decode a Scale; its JSON omits replicas of zero."""
    spec, status = content.get("spec") or {}, content.get("status") or {}
    replicas, current = _int32(spec.get("replicas", 0)), _int32(status.get("replicas", 0))
    return _observed(content, scale_target(replicas, current, str(status.get("selector") or "")))


def scale_target(replicas: int, status_replicas: int, selector: str) -> ScaleTarget | UnavailableTarget:
    """Return a scale whose selector is parsed and printed again, as client-go does."""
    if len(selector) > _MAX_LENGTH:
        return _TOO_LARGE
    try:
        parsed = parse(selector)
    except SelectorError as error:
        return UnavailableTarget(f'couldn\'t parse the selector string "{selector}": {error}')
    if len(parsed.requirements) > MAX_REQUIREMENTS:
        return _TOO_LARGE
    for requirement in parsed.requirements:
        if requirement.operator in {GREATER_THAN, LESS_THAN}:
            return UnavailableTarget(f'"{requirement.operator}" isn\'t supported in label selectors')
    normalized = Selector(
        Requirement(
            requirement.key, _NORMALIZED_OPERATORS.get(requirement.operator, requirement.operator), requirement.values
        )
        for requirement in parsed.requirements
    )
    return ScaleTarget(replicas, status_replicas, str(normalized))


def _observed(content: Json, scale: ScaleTarget | UnavailableTarget) -> ObservedScale:
    metadata = content["metadata"]
    return ObservedScale(scale, str(metadata.get("resourceVersion", "")), str(metadata.get("uid", "")))


def is_int32(value: object) -> TypeGuard[int]:
    """Return whether a JSON value is an integer in the range of a Scale's replicas."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31


def _int32(value: object) -> int:
    if not is_int32(value):
        raise TypeError(f"replicas must be a 32-bit integer, is {str(value)[:32]}")
    return value


def _selector_text(selector: Json | None) -> str | None:
    """Return the text of a LabelSelector; None if it is too large."""
    try:
        parsed = msgspec.convert(selector, LabelSelector | None)
        if parsed is not None and _is_too_large(parsed):
            return None
        return str(from_label_selector(parsed))
    except (msgspec.ValidationError, SelectorError):
        return str(Selector())


def _is_too_large(selector: LabelSelector) -> bool:
    labels, expressions = selector.match_labels, selector.match_expressions
    if len(labels) + len(expressions) > MAX_REQUIREMENTS:
        return True
    texts = [*labels, *labels.values(), *(text for each in expressions for text in (each.key, *each.values))]
    return len(texts) + sum(map(len, texts)) > _MAX_LENGTH


def value_at(content: Json, path: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value at a dotted path; a CustomResourceDefinition allows no other form."""
    value: Any = content
    for field in path.removeprefix(".").split("."):
        value = value.get(field) if isinstance(value, dict) else None
    return value
