"""From a document to a record, strictly: an unknown key is an error that names its path and the nearest right key."""

import difflib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from adapter.decoding.duration import parse_duration
from adapter.errors import ConfigInvalid

T = TypeVar("T", bound=msgspec.Struct)


def decode(document: object, shape: type[T], at: str = "") -> T:
    """Make a record of a document; raise ``ConfigInvalid`` with every unknown key, or else every wrong value.

    ``at`` is where the document stands in a larger one.
    """
    found = list(_unknown(document, shape, at))
    if found:
        raise ConfigInvalid(found)
    read = _with_durations(document, shape, at)
    try:
        return msgspec.convert(read, shape)
    except msgspec.ValidationError as error:
        raise ConfigInvalid(_wrong(read, shape, at, error)) from None


@cache
def _fields(shape: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.encode_name: field.type for field in msgspec.structs.fields(shape)}


def _unknown(value: object, shape: object, at: str) -> Iterator[str]:
    record, item = _record(shape), _item(shape)
    if record is not None and isinstance(value, Mapping):
        fields = _fields(record)
        for key, inner in value.items():
            path = f"{at}.{key}" if at else str(key)
            if key in fields:
                yield from _unknown(inner, fields[key], path)
            else:
                yield f"{path}: unknown key{_nearest(str(key), fields)}"
    elif item is not None and isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _unknown(inner, item, f"{at}[{number}]")
    elif (entry := _entry(shape)) is not None and isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _unknown(inner, entry, f"{at}.{key}")


def _nearest(key: str, fields: Mapping[str, object]) -> str:
    alike = difflib.get_close_matches(key, fields, 1, 0.5)
    return f"; did you mean {alike[0]!r}?" if alike else f"; known here: {', '.join(sorted(fields))}"


def _with_durations(value: object, shape: object, at: str) -> object:
    """Return the document with every duration made one, so that files say ``10s`` and records hold a timedelta."""
    record, item = _record(shape), _item(shape)
    if shape is timedelta:
        return _duration(value, at)
    if record is not None and isinstance(value, Mapping):
        fields = _fields(record)
        return {key: _with_durations(inner, fields[key], f"{at}.{key}" if at else key) for key, inner in value.items()}
    if item is not None and isinstance(value, list):
        return [_with_durations(inner, item, f"{at}[{number}]") for number, inner in enumerate(value)]
    if (entry := _entry(shape)) is not None and isinstance(value, Mapping):
        return {key: _with_durations(inner, entry, f"{at}.{key}") for key, inner in value.items()}
    return value


def _wrong(value: object, shape: Any, at: str, error: msgspec.ValidationError) -> Iterator[str]:  # noqa: ANN401 - a type
    """Look for what is wrong below; else it is this. The error's own path lacks the names of the user's own choice."""
    is_below = False
    for inner, its_shape, path in _below(value, shape, at):
        try:
            msgspec.convert(inner, its_shape)
        except msgspec.ValidationError as its_error:
            is_below = True
            yield from _wrong(inner, its_shape, path, its_error)
    if not is_below:
        yield _message(error, at)


def _below(value: object, shape: object, at: str) -> Iterator[tuple[object, Any, str]]:
    record, item, entry = _record(shape), _item(shape), _entry(shape)
    if record is not None and isinstance(value, Mapping):
        fields = _fields(record)
        yield from ((value[key], fields[key], f"{at}.{key}" if at else key) for key in fields if key in value)
    elif item is not None and isinstance(value, list):
        yield from ((inner, item, f"{at}[{number}]") for number, inner in enumerate(value))
    elif entry is not None and isinstance(value, Mapping):
        yield from ((inner, entry, f"{at}.{key}") for key, inner in value.items())


def _duration(value: object, at: str) -> timedelta:
    try:
        return parse_duration(str(value))
    except ValueError as error:
        raise ConfigInvalid([f"{at}: {error}"]) from None


def _record(shape: object) -> type[msgspec.Struct] | None:
    options = get_args(shape) if get_origin(shape) in {Union, UnionType} else (shape,)
    return next((each for each in options if isinstance(each, type) and issubclass(each, msgspec.Struct)), None)


def _item(shape: object) -> object:
    return get_args(shape)[0] if get_origin(shape) is tuple else None


def _entry(shape: object) -> object:
    """Say what a mapping from names of the user's own choice holds; None if it is no such mapping."""
    return get_args(shape)[1] if get_origin(shape) in {dict, Mapping} else None


def _message(error: msgspec.ValidationError, at: str) -> str:
    """Put the path first, as our own messages have it."""
    text, _, path = str(error).partition(" - at `$")
    place = f"{at}{path.strip('`')}".strip(".") or "the file"
    return f"{place}: {text[0].lower()}{text[1:]}"
