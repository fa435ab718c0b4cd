"""Encodes types as JSON; empty fields are omitted exactly where Go's ``omitempty`` omits them."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from autoscaler.types import spec, status
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import LabelSelectorRequirement
from autoscaler.values.timestamps import format_rfc3339

Json: TypeAlias = dict[str, Any]


NOT_OMITTED: Final[Mapping[type[Struct], tuple[str, ...]]] = {
    LabelSelectorRequirement: ("key", "operator"),
    spec.ObjectReference: ("kind", "name"),
    spec.MetricIdentifier: ("name",),
    spec.MetricTarget: ("type",),
    spec.ResourceSource: ("name", "target"),
    spec.ContainerResourceSource: ("name", "target", "container"),
    spec.PodsSource: ("metric", "target"),
    spec.ObjectSource: ("described_object", "target", "metric"),
    spec.ExternalSource: ("metric", "target"),
    spec.Metric: ("type",),
    spec.Policy: ("type", "value", "period_seconds"),
    spec.Spec: ("scale_target_ref", "max_replicas"),
    status.Condition: ("last_transition_time",),
    status.Status: ("desired_replicas", "current_metrics"),
}
"""Fields with a default that Kubernetes' types declare without ``omitempty``."""


class _Field(Struct, frozen=True):
    name: str
    key: str
    default: object
    always: bool


@cache
def _fields(kind: type[Struct]) -> tuple[_Field, ...]:
    always = NOT_OMITTED.get(kind, ())
    return tuple(
        _Field(field.name, field.encode_name, field.default, always=field.required or field.name in always)
        for field in msgspec.structs.fields(kind)
    )


def encode(value: Struct) -> Json:
    """Encode a spec, a status or a part of them as JSON values."""
    encoded: Json = {}
    for field in _fields(type(value)):
        item = getattr(value, field.name)
        if field.always or not _is_empty(item, field.default):
            encoded[field.key] = _encode(item)
    return encoded


def _is_empty(item: object, default: object) -> bool:
    return item is None or item == default or (isinstance(item, tuple | Mapping) and not item)


def _encode(item: object) -> object:
    match item:
        case Quantity():
            return str(item)
        case Struct():
            return encode(item)
        case tuple():
            return [_encode(element) for element in item]
        case datetime():
            return format_rfc3339(item)
        case Mapping():
            return dict(item)
        case _:
            return item
