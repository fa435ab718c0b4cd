"""Limits of the parameters of all backends: length of texts, size of numbers, number of items, total size.

Every parameter has a limit: the ``max_length`` of its ``msgspec.Meta``, or the default of its type. So a new backend
has limits without declaring them. The schema of ``ExternalMetric`` contains the same limits. They are checked before
any other code reads the parameters, because a parser may need more than linear time or stack.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from typing import Final

import msgspec
from msgspec import inspect

from adapter.decoding.duration import format_duration, parse_duration
from adapter.decoding.problem import Problem

MAX_BYTES: Final = 32 * 1024
"""Of all parameters of a rule, as JSON."""

MAX_KEY_LENGTH: Final = 255
_MAX_TEXT_LENGTH: Final = 1024
_MAX_DURATION_LENGTH: Final = 32
_MAX_ITEMS: Final = 64
_MAX_DURATION: Final = timedelta(days=3650)  # subtracting a longer one from the current time could overflow datetime
_MAX_INTEGER: Final = 2**53  # larger numbers are not exact in JSON
_SECOND_RULE: Final = "write a second rule"


def limit_problems(value: object, parameters_type: type[msgspec.Struct], path: str) -> Iterator[Problem]:
    """Return the parameters that exceed a limit. Values of another type are left to decoding."""
    yield from _problems(value, _type_info(parameters_type), path)


def size_problems(parameters: Mapping[str, object], path: str) -> Iterator[Problem]:
    """Return a problem if decoded parameters are too large as a whole."""
    size = len(msgspec.json.encode(parameters))
    if size > MAX_BYTES:
        yield Problem(path, f"must have at most {MAX_BYTES} bytes as JSON, has {size}", hint=_SECOND_RULE)


def maximum(shape: inspect.Type) -> int:
    """Return the limit of a type: characters, items, keys, or the absolute value of an integer."""
    match shape:
        case inspect.IntType(le=limit):
            return _MAX_INTEGER if limit is None else limit
        case inspect.VarTupleType(max_length=limit) | inspect.DictType(max_length=limit):
            return limit or _MAX_ITEMS
        case inspect.StrType(max_length=limit):
            return limit or _MAX_TEXT_LENGTH
        case inspect.StructType():
            return _MAX_ITEMS
        case inspect.TimeDeltaType():
            return _MAX_DURATION_LENGTH
        case inspect.UnionType(types=types):
            return max(map(maximum, types))
        case inspect.LiteralType() | inspect.BoolType() | inspect.NoneType():
            return _MAX_TEXT_LENGTH
        case _:
            raise TypeError(f"a parameter of type {shape} has no limit")


def _problems(value: object, shape: inspect.Type, path: str) -> Iterator[Problem]:
    limit = maximum(shape)
    match value:
        case str() if len(value) > limit:
            yield Problem(path, f"must have at most {limit} characters, has {len(value)}")
        case str() if isinstance(shape, inspect.TimeDeltaType) and _is_too_long(value):
            yield Problem(path, f"must be at most {format_duration(_MAX_DURATION)}")
        case int() if abs(value) > limit and isinstance(shape, inspect.IntType):
            yield Problem(path, f"must be an integer from {-limit} to {limit}")
        case list() if len(value) > limit:
            yield Problem(path, f"must have at most {limit} items, has {len(value)}", hint=_SECOND_RULE)
        case Mapping() if len(value) > limit:
            hint = f"remove keys or {_SECOND_RULE}"
            yield Problem(path, f"must have at most {limit} keys, has {len(value)}", hint=hint)
        case list() if isinstance(shape, inspect.VarTupleType):
            for index, item in enumerate(value):
                yield from _problems(item, shape.item_type, f"{path}[{index}]")
        case Mapping():
            yield from _mapping_problems(value, shape, path)
        case _:
            pass


def _mapping_problems(value: Mapping[object, object], shape: inspect.Type, path: str) -> Iterator[Problem]:
    if any(isinstance(key, str) and len(key) > MAX_KEY_LENGTH for key in value):
        yield Problem(path, f"must have keys of at most {MAX_KEY_LENGTH} characters")
    elif isinstance(shape, inspect.DictType):
        for key, inner in value.items():
            yield from _problems(inner, shape.value_type, f"{path}.{key}")
    elif isinstance(shape, inspect.StructType):
        for field in shape.fields:
            if field.encode_name in value:
                yield from _problems(value[field.encode_name], field.type, f"{path}.{field.encode_name}")


def _is_too_long(text: str) -> bool:
    try:
        return parse_duration(text) > _MAX_DURATION
    except ValueError:
        return False  # decoding reports it


@cache
def _type_info(parameters_type: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(parameters_type)
