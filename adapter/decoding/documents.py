"""Strict conversion of documents (YAML or JSON) into typed records.

Durations are written as text, such as ``10s``. Unknown keys, missing keys and values of the wrong type are all reported
at once, each as a ``Problem`` with its path; an unknown key with the most similar known key.

Documents come from users. Their nesting is limited before recursive code processes them, in one place for all of them.
"""

import difflib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from adapter.decoding.duration import parse_duration
from adapter.decoding.problem import ConfigInvalid, Problem

T = TypeVar("T", bound=msgspec.Struct)

MAX_DEPTH: Final = 32
"""Nesting of a document. No record is nested deeper than twelve levels; Python's recursion ends at about 1000."""

_MAX_UNKNOWN_KEYS: Final = 20  # per document; difflib would take minutes for thousands
_MAX_KEY_LENGTH: Final = 64  # of a key in the path of a problem; the keys of a document are as long as its author likes
_PATH_DEPTH: Final = 3  # levels in the path of a document that is nested too deep


def decode(document: object, shape: type[T], path: str = "") -> T:
    """Convert a document to a record; raise ``ConfigInvalid`` with all problems.

    ``path`` is the place of the document in an outer document; the paths of problems start with it.
    """
    _limit_depth(document, path)
    problems: list[Problem] = []
    content = _check(document, shape, path, problems)
    if problems:
        raise ConfigInvalid(problems)
    try:
        return msgspec.convert(content, shape)
    except msgspec.ValidationError as error:  # such as a key that is not a string
        raise ConfigInvalid([_type_problem(error, shape, path)]) from None


def encode(document: object, path: str = "") -> bytes:
    """Return a document as JSON; raise ``ConfigInvalid`` if JSON cannot represent it or it is nested too deep."""
    _limit_depth(document, path)
    try:
        return msgspec.json.encode(document)
    except (TypeError, ValueError) as error:  # a lone surrogate, or a value or key that has no type in JSON
        raise ConfigInvalid([Problem(path, f"cannot be represented as JSON: {error}")]) from None


def _limit_depth(document: object, path: str) -> None:
    """Raise ``ConfigInvalid`` if the document is nested too deep.

    Level by level, without recursion. A container that occurs several times in a level, as YAML aliases cause, is
    processed once, so that the duration is limited as well.
    """
    level: list[tuple[str, object]] = [(path, document)]
    for depth in range(MAX_DEPTH + 1):
        containers = {id(value): (place, value) for place, value in level if isinstance(value, Mapping | list | tuple)}
        if not containers:
            return
        level = [inner for place, value in containers.values() for inner in _children(value, place, depth)]
    deepest = next(iter(containers.values()))[0]
    raise ConfigInvalid([Problem(deepest, f"must not be nested deeper than {MAX_DEPTH} levels")])


def _children(value: object, path: str, depth: int) -> Iterator[tuple[str, object]]:
    """Yield the values in a container with their paths; below the third level with the path of the third level."""
    if isinstance(value, Mapping):
        yield from ((_join(path, key) if depth < _PATH_DEPTH else path, inner) for key, inner in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"{path}[{i}]" if depth < _PATH_DEPTH else path, inner) for i, inner in enumerate(value))


def _check(value: object, shape: Any, path: str, problems: list[Problem]) -> object:  # noqa: ANN401 - a type
    """Return the value with its durations parsed; add all problems of the value and of everything below it."""
    if get_origin(shape) is Annotated:  # msgspec.convert checks the constraint
        return _check(value, get_args(shape)[0], path, problems)
    record = _record(shape)
    origin, arguments = get_origin(shape), get_args(shape)
    if shape is timedelta or (shape == timedelta | None and value is not None):
        try:
            return parse_duration(str(value) if isinstance(value, str | int | float) else type(value).__name__)
        except ValueError as error:
            problems.append(Problem(path, str(error)))
    elif record is not None and isinstance(value, Mapping):
        return _check_record(value, record, path, problems)
    elif origin is tuple and isinstance(value, list):
        return [_check(inner, arguments[0], f"{path}[{index}]", problems) for index, inner in enumerate(value)]
    elif origin in {dict, Mapping} and isinstance(value, Mapping):  # the user chooses the keys
        return {key: _check(inner, arguments[1], _join(path, key), problems) for key, inner in value.items()}
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
        elif len(problems) < _MAX_UNKNOWN_KEYS:
            similar = difflib.get_close_matches(str(key)[:_MAX_KEY_LENGTH], fields, 1, 0.5)
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
    text = str(key)[:_MAX_KEY_LENGTH]
    return f"{path}.{text}" if path else text


@cache
def _fields(record: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(record)}


def _record(shape: object) -> type[msgspec.Struct] | None:
    options = get_args(shape) if get_origin(shape) in {Union, UnionType} else (shape,)
    return next((each for each in options if isinstance(each, type) and issubclass(each, msgspec.Struct)), None)
