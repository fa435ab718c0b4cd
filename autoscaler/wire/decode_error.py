"""Errors of decoding: the path of each field and what it must be."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from autoscaler.types.record import Record


class FieldError(Record):
    """An invalid field: its path and what it must be."""

    path: str
    message: str
    suggestion: str = ""
    """The path of the most similar field, for an unknown key."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class DecodeError(ValueError):
    """A document cannot be decoded."""

    def __init__(self, errors: tuple[FieldError, ...]) -> None:
        self.errors = errors
        super().__init__("; ".join(map(str, errors)))


_TYPE_NAMES: Final[Mapping[str, str]] = {
    "int": "an integer",
    "float": "a non-integer number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "datetime": "a time such as 2000-01-01T02:00:00Z",
    "null": "null",
}
_NEEDS_QUOTES: Final = frozenset({"int", "float", "bool"})


def json_type_name(value: object) -> str:
    name = {dict: "object", list: "array", type(None): "null"}.get(type(value), type(value).__name__)
    return _TYPE_NAMES.get(name, name)


def _wrong_type(expected: str, actual: str) -> str:
    hint = "; put it in quotes" if expected == "str" and actual in _NEEDS_QUOTES else ""
    return f"must be {_TYPE_NAMES.get(expected, expected)}, is {_TYPE_NAMES.get(actual, actual)}{hint}"


_TRANSLATIONS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(r"Expected `int` <= (\d+)"), lambda match: f"must be at most {match[1]}"),
    (re.compile(r"Expected `int` >= (-\d+)"), lambda match: f"must be at least {match[1]}"),
    (re.compile(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`"), lambda match: _wrong_type(match[1], match[2])),
    (re.compile(r".*(?:RFC3339|timezone).*"), lambda _: f"must be {_TYPE_NAMES['datetime']}, with its time zone"),
    (
        re.compile(r"quantities must match .*|unable to parse quantity.*"),
        lambda match: f'must be a quantity such as "500m", "2" or "1Gi": {match[0]}',
    ),
)
"""Messages of msgspec and of quantities, and their replacements."""


def translated(message: str) -> str:
    """Translate the message of msgspec about one value."""
    for pattern, translate in _TRANSLATIONS:
        if match := pattern.fullmatch(message):
            return translate(match)
    return message
