"""Compares a JSON document with its type: finds unknown keys, and replaces null by zero values.

The document is traversed by type, so a label called ``spec`` is a label. That is slow compared to decoding, and is only
done in strict mode or after decoding failed.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

from msgspec import Struct, inspect

from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.status import Condition
from autoscaler.wire.decode_error import FieldError

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
"""Keys that Kubernetes defines and that are not used here."""


shape_of = cache(inspect.type_info)


def unknown_keys(document: object, kind: type) -> Iterator[FieldError]:
    """Yield an error for every key of the document that its type does not define, in the document's order."""
    return _unknown(document, shape_of(kind), "")


def with_zero_values(document: object, kind: type) -> object:
    """Remove nulls and add missing required keys; in Kubernetes both mean the zero value."""
    return _completed(document, shape_of(kind))


def _unknown(value: object, shape: inspect.Type, path: str) -> Iterator[FieldError]:
    match without_optional(shape), value:
        case inspect.StructType() as struct, dict():
            yield from _unknown_in_struct(value, struct, path)
        case inspect.VarTupleType(item_type=inner), list():
            for index, item in enumerate(value):
                yield from _unknown(item, inner, f"{path}[{index}]")
        case _:
            pass  # a value without keys, or of a wrong type, which decoding reports


def _unknown_in_struct(value: Mapping[Any, Any], struct: inspect.StructType, path: str) -> Iterator[FieldError]:
    fields = {field.encode_name: field.type for field in struct.fields}
    also_known = _ALSO_KNOWN.get(struct.cls, ())
    for key, item in value.items():
        if key in fields:
            yield from _unknown(item, fields[key], f"{path}.{key}" if path else key)
        elif key not in also_known:
            yield unknown_key_error(path, str(key), (*fields, *also_known))


def unknown_key_error(parent: str, key: str, known: tuple[str, ...]) -> FieldError:
    """Return the error for an unknown key, with the most similar one of the known keys."""
    prefix = f"{parent}." if parent else ""
    by_lower_case = {name.lower(): name for name in known}
    for match in get_close_matches(key.lower(), by_lower_case, n=1):
        nearest = by_lower_case[match]
        return FieldError(f"{prefix}{key}", f"unknown field; did you mean {nearest}?", f"{prefix}{nearest}")
    return FieldError(f"{prefix}{key}", f"unknown field; known fields are {', '.join(known)}")


def _completed(value: object, shape: inspect.Type) -> object:
    inner_shape = without_optional(shape)
    if value is None:
        value = {} if isinstance(inner_shape, inspect.StructType) else ""
    match inner_shape, value:
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


def without_optional(shape: inspect.Type) -> inspect.Type:
    if isinstance(shape, inspect.UnionType):
        (shape,) = (option for option in shape.types if not isinstance(option, inspect.NoneType))
    return shape
