"""The fields of a record: key, default, description and choices, read from its source and its annotations."""

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

from adapter.decoding.duration import format_duration
from autoscaler.types.record import Record


class Setting(NamedTuple):
    """One key of the configuration."""

    key: str
    default: str
    """As printed: code, ``required``, or empty."""

    description: str
    record: type[Record] | None
    """The type of the value, or of the items of a list or a mapping, if that is a record."""

    suffix: str
    """How the path of the record continues: empty, ``[]`` for a list, ``.NAME`` for a mapping."""


def settings(record: type[Record]) -> Iterator[Setting]:
    """Yield the settings of a record, in the order of its fields."""
    descriptions = field_docstrings(record)
    for field in fields(record):
        inner, suffix = _inner_record(field.type)
        description = descriptions.get(field.name) or (_first_paragraph(inner) if inner else "")
        description += _choices(field.type)
        yield Setting(field.encode_name, _default(field), description, inner, suffix)


@lru_cache
def field_docstrings(record: type[Record]) -> Mapping[str, str]:
    """Return the string literal below each field in the source, including inherited fields."""
    found: dict[str, str] = {}
    for base in reversed(record.__bases__):
        if issubclass(base, Record) and base is not Record:
            found.update(field_docstrings(base))
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(record))).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101 - narrows the type
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            found[field.target.id] = as_markdown(ast.literal_eval(below.value))
    return found


def as_markdown(text: str) -> str:
    """Return a docstring as one line of Markdown."""
    return " ".join(text.split()).replace("``", "`")


def format_value(value: object) -> str:
    """Return a default value as it is written in the configuration file, as Markdown code; empty for none."""
    if isinstance(value, Enum):
        return f"`{value.value}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, timedelta):
        return f"`{format_duration(value)}`"
    return f"`{value}`" if isinstance(value, int | float | str) and value != "" else ""


def _first_paragraph(record: type[Record]) -> str:
    return as_markdown((inspect.getdoc(record) or "").split("\n\n", maxsplit=1)[0])


def _default(field: FieldInfo) -> str:
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    return "required" if default is NODEFAULT else format_value(default)


def _inner_record(kind: Any) -> tuple[type[Record] | None, str]:  # noqa: ANN401 - any annotation
    """Return the record in an annotation and its path suffix."""
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind, ""
    origin = get_origin(kind)
    suffix = ""
    if isinstance(origin, type):
        suffix = "[]" if origin is tuple else ".NAME" if issubclass(origin, Mapping) else ""
    for part in get_args(kind):
        record = _inner_record(part)[0] if part not in (NoneType, ...) else None
        if record is not None:
            return record, suffix
    return None, ""


def _choices(kind: Any) -> str:  # noqa: ANN401 - any annotation
    if get_origin(kind) is Literal:
        choices = get_args(kind)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        choices = tuple(member.value for member in kind)
    else:
        return ""
    return f" One of {', '.join(f'`{choice}`' for choice in choices)}."
