"""What a type says of its own fields: the text below each, its default, and what may stand there."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import Enum
from functools import lru_cache
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from msgspec import NODEFAULT
from msgspec.structs import FieldInfo, fields

from autoscaler.types.record import Record


class Setting(NamedTuple):
    """One key of the configuration."""

    key: str
    default: str
    meaning: str
    inner: type[Record] | None
    """The record that stands there, if it is one, or a list or a table of them."""

    many: str
    """How the key of what is inside begins: nothing, ``[]`` for a list, ``.NAME`` for a table."""


def settings(of: type[Record]) -> Iterator[Setting]:
    """Give the settings of a record, in its order."""
    said = texts(of)
    for field in fields(of):
        inner, many = _inside(field.type)
        meaning = said.get(field.name) or (_first_sentence(inner) if inner else "")
        yield Setting(field.encode_name, _default(field), _with_choices(meaning, field.type), inner, many)


@lru_cache
def texts(of: type[Record]) -> Mapping[str, str]:
    """Read the text that stands below each field in the source, of what it inherits, too."""
    inherited: dict[str, str] = {}
    for base in reversed(of.__bases__):
        if issubclass(base, Record) and base is not Record:
            inherited.update(texts(base))
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(of))).body
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - what else could the source of a class be
    found = inherited
    for field, below in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            found[field.target.id] = plain(ast.literal_eval(below.value))
    return found


def plain(text: str) -> str:
    """Make one line of a text, with code marked as Markdown does."""
    return " ".join(text.split()).replace("``", "`")


def duration(time: timedelta) -> str:
    """Write a time as the configuration has it."""
    seconds = int(time.total_seconds())
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _first_sentence(of: type[Record]) -> str:
    return plain(inspect.getdoc(of) or "").split("\n\n", maxsplit=1)[0]


def _default(field: FieldInfo) -> str:
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    if default is NODEFAULT:
        return "required"
    if isinstance(default, Enum):
        return f"`{default.value}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, timedelta):
        return f"`{duration(default)}`"
    return f"`{default}`" if isinstance(default, int | float | str) and default != "" else ""


def _inside(kind: Any) -> tuple[type[Record] | None, str]:  # noqa: ANN401 - whatever an annotation can be
    """Find the record in an annotation, and whether it is one, a list or a table of them."""
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind, ""
    many = {tuple: "[]"}.get(get_origin(kind), ".NAME" if get_origin(kind) and _is_table(kind) else "")
    for part in get_args(kind):
        found = _inside(part)[0] if part not in (NoneType, ...) else None
        if found is not None:
            return found, many
    return None, ""


def _is_table(kind: Any) -> bool:  # noqa: ANN401 - whatever an annotation can be
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _with_choices(meaning: str, kind: Any) -> str:  # noqa: ANN401 - whatever an annotation can be
    if get_origin(kind) is Literal:
        words = get_args(kind)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        words = tuple(member.value for member in kind)
    else:
        return meaning
    return f"{meaning} One of {', '.join(f'`{word}`' for word in words)}."
