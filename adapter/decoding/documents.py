"""Strict conversion of documents (YAML or JSON) into typed records.

Durations are written as text, such as ``10s``. Unknown keys, missing keys and values of the wrong type are all reported
at once, each as a ``Problem`` with its path; an unknown key with the most similar known key.
"""

import difflib
from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from adapter.decoding.duration import parse_duration
from adapter.decoding.problem import ConfigInvalid, Problem

T = TypeVar("T", bound=msgspec.Struct)


def decode(document: object, shape: type[T], path: str = "") -> T:
    """Convert a document to a record; raise ``ConfigInvalid`` with all problems.

    ``path`` is the place of the document in an outer document; the paths of problems start with it.
    """
    problems: list[Problem] = []
    content = _check(document, shape, path, problems)
    if problems:
        raise ConfigInvalid(problems)
    try:
        return msgspec.convert(content, shape)
    except msgspec.ValidationError as error:  # such as a key that is not a string
        raise ConfigInvalid([_type_problem(error, shape, path)]) from None


def _check(value: object, shape: Any, path: str, problems: list[Problem]) -> object:  # noqa: ANN401 - a type
    """Return the value with its durations parsed; add all problems of the value and of everything below it."""
    record = _record(shape)
    origin, arguments = get_origin(shape), get_args(shape)
    if shape is timedelta:
        try:
            return parse_duration(str(value))
        except ValueError as error:
            problems.append(Problem(path, str(error)))
    elif record is not None and isinstance(value, Mapping):
        return _check_record(value, record, path, problems)
    elif origin is tuple and isinstance(value, list):
        return [_check(inner, arguments[0], f"{path}[{index}]", problems) for index, inner in enumerate(value)]
    elif origin in {dict, Mapping} and isinstance(value, Mapping):  # the user chooses the keys
        return {key: _check(inner, arguments[1], f"{path}.{key}", problems) for key, inner in value.items()}
    else:
        try:
            msgspec.convert(value, shape)
        except msgspec.ValidationError as error:
            problems.append(_type_problem(error, shape, path))
    return value


def _check_record(
    value: Mapping[str, object], record: type[msgspec.Struct], path: str, problems: list[Problem]
) -> dict[str, object]:
    fields = _fields(record)
    missing = {name for name, field in fields.items() if field.required and name not in value}
    content = {}
    for key, inner in value.items():
        if key in fields:
            content[key] = _check(inner, fields[key].type, _join(path, key), problems)
        else:
            similar = difflib.get_close_matches(str(key), fields, 1, 0.5)
            missing -= set(similar)  # one problem for a misspelled required key, not two
            hint = f"did you mean {similar[0]!r}?" if similar else f"known here: {', '.join(sorted(fields))}"
            problems.append(Problem(_join(path, key), "unknown key", hint=hint))
    problems += (Problem(_join(path, name), "is required") for name in sorted(missing))
    return content


def _type_problem(error: msgspec.ValidationError, shape: object, path: str) -> Problem:
    text, _, inner = str(error).partition(" - at `$")
    choices = get_args(shape) if get_origin(shape) is Literal else ()
    if isinstance(shape, type) and issubclass(shape, Enum):
        choices = tuple(each.value for each in shape)
    hint = f"one of {', '.join(map(str, choices))}" if choices else ""
    return Problem(f"{path}{inner.strip('`')}".strip("."), f"{text[0].lower()}{text[1:]}", hint=hint)


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


@cache
def _fields(record: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(record)}


def _record(shape: object) -> type[msgspec.Struct] | None:
    options = get_args(shape) if get_origin(shape) in {Union, UnionType} else (shape,)
    return next((each for each in options if isinstance(each, type) and issubclass(each, msgspec.Struct)), None)
