"""One thing that is wrong with an object: its kind, its place, its value and why, printed as Kubernetes prints it."""

import json
from collections.abc import Iterable
from enum import Enum
from typing import Final, TypeAlias

from autoscaler.types.record import Record
from autoscaler.values.names import quoted
from autoscaler.values.quantity import Quantity


class Kind(Enum):
    """A kind of problem: the name that machines are given, and the words that people are."""

    REQUIRED = ("FieldValueRequired", "Required value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")

    def __init__(self, code: str, words: str) -> None:
        self.code = code
        self.words = words


class Word(str):
    """A text that Kubernetes has a type of its own for (a metric's type, say): it is shown as JSON, not as Go."""

    __slots__ = ()


Value: TypeAlias = int | str | Word | Quantity


class Problem(Record):
    """What is wrong, and where."""

    kind: Kind
    path: str
    value: Value | None = None
    """What stands there; None where the kind does not show it."""

    detail: str = ""

    @property
    def body(self) -> str:
        """Say it without the path."""
        parts = (self.kind.words, *(() if self.value is None else (_shown(self.value),)), self.detail)
        return ": ".join(part for part in parts if part)

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


def required(path: str, detail: str = "") -> Problem:
    """Report something that is missing."""
    return Problem(Kind.REQUIRED, path, None, detail)


def invalid(path: str, value: Value, detail: str) -> Problem:
    """Report a value that cannot be."""
    return Problem(Kind.INVALID, path, value, detail)


def not_supported(path: str, value: str, supported: Iterable[str]) -> Problem:
    """Report a word that is not one of a few."""
    return Problem(
        Kind.NOT_SUPPORTED, path, Word(value), f"supported values: {', '.join(map(quoted, sorted(supported)))}"
    )


def forbidden(path: str, detail: str) -> Problem:
    """Report something that may not stand here."""
    return Problem(Kind.FORBIDDEN, path, None, detail)


def too_long(path: str, most_bytes: int) -> Problem:
    """Report something that is too big to be shown."""
    return Problem(Kind.TOO_LONG, path, None, f"may not be more than {most_bytes} bytes")


def _shown(value: Value) -> str:
    match value:
        case Word():
            return json_quoted(value)
        case str():
            return quoted(value)
        case Quantity():
            return f'"{value}"'
        case _:
            return str(value)


_JSON_IN_HTML: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def json_quoted(text: str) -> str:
    """Quote a text as Go's JSON does, which is also safe inside HTML."""
    return json.dumps(text, ensure_ascii=False).translate(_JSON_IN_HTML)
