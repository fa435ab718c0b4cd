"""Finds every value of a document that cannot be decoded, so that one wrong type does not hide other problems."""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, inspect

from autoscaler.types.record import Record
from autoscaler.types.spec import CONTAINER_RESOURCE, EXTERNAL, OBJECT, PAUSED, PODS, RESOURCE
from autoscaler.wire.decode_error import FieldError, json_type_name, translated
from autoscaler.wire.document import shape_of, without_optional
from autoscaler.wire.quantities import decode_quantity

Key: TypeAlias = str | int

_ABSENT: Final = object()
_TEXTS: Final = (_ABSENT, OBJECT, EXTERNAL, PODS, RESOURCE, CONTAINER_RESOURCE, PAUSED, "ReplicationController")
_NUMBERS: Final = (_ABSENT, 1, 2**31 - 1, 0)


class Undecodable(Record):
    """A value that its type cannot decode."""

    keys: tuple[Key, ...]
    error: FieldError
    substitutes: tuple[object, ...]
    """Values that the user may have meant; enough of them that each rule on several fields holds for one."""


def undecodable_values(document: object, kind: type) -> tuple[Undecodable, ...]:
    """Return every value of the document that cannot be decoded as ``kind``, in the order of the document."""
    return tuple(_in_value(document, shape_of(kind), ()))


def variants(document: object, undecodable: Iterable[Undecodable]) -> Iterator[Any]:
    """Yield copies of the document without its undecodable values: without them, and with other values instead."""
    values = tuple(undecodable)
    for number in range(max((len(value.substitutes) for value in values), default=1)):
        variant = deepcopy(document)
        for value in reversed(values):  # the last item of a list first, so that the indexes stay valid
            _substitute(variant, value.keys, value.substitutes[number % len(value.substitutes)])
        yield variant


def _substitute(document: Any, keys: tuple[Key, ...], value: object) -> None:  # noqa: ANN401 - JSON
    *parents, last = keys
    for key in parents:
        document = document[key]
    if value is _ABSENT:
        document[last] = None  # in Kubernetes, null means absent
    else:
        document[last] = value


def _in_value(value: object, shape: inspect.Type, keys: tuple[Key, ...]) -> Iterator[Undecodable]:
    if value is None:
        return
    match without_optional(shape):
        case inspect.StructType(fields=fields):
            if isinstance(value, dict):
                for field in fields:
                    if field.encode_name in value:
                        yield from _in_value(value[field.encode_name], field.type, (*keys, field.encode_name))
            else:
                yield _wrong(keys, f"must be an object, is {json_type_name(value)}", (_ABSENT,))
        case inspect.VarTupleType(item_type=inner):
            if isinstance(value, list):
                for index, item in enumerate(value):
                    yield from _in_value(item, inner, (*keys, index))
            else:
                yield _wrong(keys, f"must be a list, is {json_type_name(value)}", (_ABSENT,))
        case inspect.DictType(value_type=inner):
            yield from _in_map(value, inner, keys)
        case leaf:
            yield from _in_leaf(value, leaf, keys)


def _in_map(value: object, inner: inspect.Type, keys: tuple[Key, ...]) -> Iterator[Undecodable]:
    if not isinstance(value, dict):
        yield _wrong(keys, f"must be an object, is {json_type_name(value)}", (_ABSENT,))
    elif not_text := [key for key in value if not isinstance(key, str)]:
        found = json_type_name(not_text[0])
        yield _wrong(keys, f"each key must be a string, is {found}; put it in quotes", (_ABSENT,))
    else:
        for key, item in value.items():
            yield from _in_value(item, inner, (*keys, key))


def _in_leaf(value: object, shape: inspect.Type, keys: tuple[Key, ...]) -> Iterator[Undecodable]:
    kind, substitutes = _leaf_type(shape)
    try:
        msgspec.convert(value, kind, dec_hook=decode_quantity)
    except msgspec.ValidationError as error:
        yield _wrong(keys, translated(str(error)), substitutes)


def _leaf_type(shape: inspect.Type) -> tuple[Any, tuple[object, ...]]:
    """Return the type of a value without fields or items, and the substitutes for an undecodable one."""
    match shape:
        case inspect.IntType(ge=minimum, le=maximum):
            return Annotated[int, Meta(ge=minimum, le=maximum)], _NUMBERS
        case inspect.StrType():
            return str, _TEXTS
        case inspect.DateTimeType():
            return Annotated[datetime, Meta(tz=True)], (_ABSENT,)
        case inspect.CustomType(cls=cls):
            return cls, (_ABSENT, "1")
        case other:
            raise TypeError(f"unsupported type: {other}")


def _wrong(keys: tuple[Key, ...], message: str, substitutes: tuple[object, ...]) -> Undecodable:
    return Undecodable(keys, FieldError(_path_text(keys), message), substitutes)


def _path_text(keys: Iterable[Key]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")
