"""Why a document could not be read, in the words of the one who wrote it: where, and what to write instead."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from autoscaler.types.record import Record
from autoscaler.wire.document import UnknownKey


class Fault(Record):
    """One thing that keeps a document from being what it should be: where, and what to write instead."""

    path: str
    advice: str
    meant: str = ""
    """The path of the field that was probably meant, if this is not one."""

    def __str__(self) -> str:
        return f"{self.path}: {self.advice}" if self.path else self.advice


class DecodeError(ValueError):
    """A document is not what it should be."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        super().__init__("; ".join(map(str, faults)))


def unknown(key: UnknownKey) -> Fault:
    """Say that a key is not known, and which one may have been meant."""
    if key.nearest:
        parent, dot, _ = key.path.rpartition(".")
        return Fault(key.path, f"is not a field here; did you mean {key.nearest}?", f"{parent}{dot}{key.nearest}")
    return Fault(key.path, f"is not a field here; the fields are {', '.join(key.known)}")


_WORDS: Final[Mapping[str, str]] = {
    "int": "a whole number",
    "float": "a number with a fraction",
    "NumberLiteral": "a number with a fraction",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "datetime": "a time such as 2000-01-01T02:00:00Z",
    "null": "null",
}
_TEXT_WITH_QUOTES: Final = frozenset({"int", "float", "NumberLiteral", "bool"})


def in_words(value: object) -> str:
    """Name what kind of JSON value this is."""
    named = {dict: "object", list: "array", type(None): "null"}.get(type(value), type(value).__name__)
    return _WORDS.get(named, named)


def _wrong_type(expected: str, got: str) -> str:
    hint = "; put it in quotes" if expected == "str" and got in _TEXT_WITH_QUOTES else ""
    return f"must be {_WORDS.get(expected, expected)}, is {_WORDS.get(got, got)}{hint}"


_AT: Final = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_ADVICE: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(r"Expected `int` <= (\d+)"), lambda found: f"must be at most {found[1]}"),
    (re.compile(r"Expected `int` >= (-\d+)"), lambda found: f"must be at least {found[1]}"),
    (re.compile(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`"), lambda found: _wrong_type(found[1], found[2])),
    (re.compile(r".*(?:RFC3339|timezone).*"), lambda _: f"must be {_WORDS['datetime']}, with its time zone"),
    (
        re.compile(r"quantities must match .*|unable to parse quantity.*"),
        lambda found: f'must be a quantity such as "500m", "2" or "1Gi": {found[0]}',
    ),
)
"""What msgspec and the quantities say, and what we say instead."""


def refused(message: str, document: object) -> Fault:
    """Say msgspec's refusal in the words of the one who wrote the document."""
    parts = _AT.fullmatch(message)
    assert parts is not None  # noqa: S101 - every part of the pattern may be empty
    path = _with_the_key(parts["path"] or "", document)
    subject = "each key " if parts["key"] else ""
    for pattern, advice in _ADVICE:
        if found := pattern.fullmatch(parts["what"]):
            return Fault(path, subject + advice(found))
    return Fault(path, parts["what"])


def _with_the_key(path: str, document: object) -> str:
    """Name the entry of a map of text whose value is not text; msgspec says only that there is one."""
    if not path.endswith("[...]"):
        return path.removeprefix(".")
    entries: Any = document
    path = path.removesuffix("[...]").removeprefix(".")
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        entries = entries[int(index)] if index else entries[name]
    return next(f"{path}.{key}" for key, value in entries.items() if not isinstance(value, str | None))
