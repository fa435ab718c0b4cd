"""A JSON document held against the type that it should become: keys that no type knows, and what null stands for.

The walk is by type, not by key, so a label called ``spec`` is a label. It is slow next to decoding, so it is only taken
when a document did not decode as it stands, or when someone asks what is wrong with it.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

from msgspec import Struct, inspect

from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.record import Record
from autoscaler.types.status import Condition

_ALSO_KNOWN: Final[Mapping[type[Struct], tuple[str, ...]]] = {
    Autoscaler: ("apiVersion", "kind"),
    Condition: ("observedGeneration",),
    Metadata: (
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "managedFields",
        "ownerReferences",
        "selfLink",
    ),
}
"""Keys that Kubernetes defines and that nothing here looks at."""


class UnknownKey(Record):
    """A key that the type at its place does not have."""

    path: str
    known: tuple[str, ...]
    nearest: str | None = None


def unknown_keys(document: object, kind: type) -> Iterator[UnknownKey]:
    """Yield every key of the document that its type does not know, in the document's order."""
    return _unknown(document, _shape(kind), "")


def as_kubernetes_reads_it(document: object, kind: type) -> object:
    """Drop what is null and add what is missing, so that it decodes as in Kubernetes: both mean the zero value."""
    return _completed(document, _shape(kind))


@cache
def _shape(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def _unknown(value: object, shape: inspect.Type, path: str) -> Iterator[UnknownKey]:
    match _substance(shape), value:
        case inspect.StructType() as struct, dict():
            yield from _unknown_in_struct(value, struct, path)
        case inspect.VarTupleType(item_type=inner), list():
            for index, item in enumerate(value):
                yield from _unknown(item, inner, f"{path}[{index}]")
        case _:
            pass  # a value without keys of its own, or one of the wrong type, which decoding reports


def _unknown_in_struct(value: Mapping[Any, Any], struct: inspect.StructType, path: str) -> Iterator[UnknownKey]:
    fields = {field.encode_name: field.type for field in struct.fields}
    also_known = _ALSO_KNOWN.get(struct.cls, ())
    for key, item in value.items():
        place = f"{path}.{key}" if path else str(key)
        if key in fields:
            yield from _unknown(item, fields[key], place)
        elif key not in also_known:
            known = (*fields, *also_known)
            yield UnknownKey(place, known, _nearest(str(key), known))


def _nearest(key: str, known: tuple[str, ...]) -> str | None:
    by_lower_case = {name.lower(): name for name in known}
    for match in get_close_matches(key.lower(), by_lower_case, n=1):
        return by_lower_case[match]
    return None


def _completed(value: object, shape: inspect.Type) -> object:
    substance = _substance(shape)
    if value is None:
        value = _zero(substance)
    match substance, value:
        case inspect.StructType() as struct, dict():
            return _completed_struct(value, struct)
        case inspect.VarTupleType(item_type=inner), list():
            return [_completed(item, inner) for item in value]
        case inspect.DictType(value_type=inner), dict():
            return {key: _completed(item, inner) for key, item in value.items()}
        case _:
            return value


def _completed_struct(value: Mapping[Any, Any], struct: inspect.StructType) -> dict[Any, object]:
    completed: dict[Any, object] = {}
    for field in struct.fields:
        item = value.get(field.encode_name)
        if item is not None or field.required:
            completed[field.encode_name] = _completed(item, field.type)
    return completed


def _substance(shape: inspect.Type) -> inspect.Type:
    """Look through an optional at what it may hold."""
    if isinstance(shape, inspect.UnionType):
        (shape,) = (option for option in shape.types if not isinstance(option, inspect.NoneType))
    return shape


def _zero(shape: inspect.Type) -> object:
    """Say what null stands for where something must stand: in a list, in a map, under a key that is always printed."""
    return {} if isinstance(shape, inspect.StructType) else ""
