"""The predefined functions of Go templates."""

import html
import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias
from urllib.parse import quote_plus

from adapter.rules.go_template.lexer import TemplateError

Value: TypeAlias = Any
"""Values are typed dynamically, as in Go templates."""

_VERB: Final = re.compile(r"%(?P<flags>[-+# 0]*\d*(?:\.\d+)?)(?P<verb>[a-zA-Z%])")


def format_value(value: object) -> str:
    """Format a value as Go's ``fmt`` does."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}"
        case Mapping():
            return f"map[{' '.join(f'{key}:{format_value(value[key])}' for key in sorted(value))}]"
        case list() | tuple():
            return f"[{' '.join(map(format_value, value))}]"
        case _:
            return str(value)


def quote(value: object) -> str:
    """Quote a value as Go's ``%q`` does."""
    text = json.dumps(format_value(value), ensure_ascii=False)
    return re.sub(r"\\u00([01][0-9a-f]|7f)", r"\\x\1", text)


def _printf(form: str, *values: object) -> str:
    remaining = list(values)

    def replace(match: re.Match[str]) -> str:
        verb, flags = match["verb"], match["flags"]
        if verb == "%":
            return "%"
        if not remaining:
            return f"%!{verb}(MISSING)"
        return _format_verb(flags, verb, remaining.pop(0))

    return _VERB.sub(replace, form) + "".join(
        f"%!(EXTRA {type(each).__name__}={format_value(each)})" for each in remaining
    )


def _format_verb(flags: str, verb: str, value: Value) -> str:
    if verb in "sv":
        return f"%{flags}s" % format_value(value)
    if verb == "q":
        return f"%{flags}s" % quote(value)
    if verb == "t" and isinstance(value, bool):
        return format_value(value)
    if verb in "dxXo" and isinstance(value, int):
        return f"%{flags}{verb}" % value
    if verb in "eEfFgG" and isinstance(value, float):
        return f"%{flags}{verb}" % value
    return f"%!{verb}({type(value).__name__}={format_value(value)})"


def _print(*values: object) -> str:
    text = ""
    for previous, value in pairwise(("", *values)):
        # Go's Sprint puts a space between two values when neither is a string.
        text += (
            format_value(value) if isinstance(value, str) or isinstance(previous, str) else f" {format_value(value)}"
        )
    return text


def _index(value: Value, *keys: Value) -> Value:
    for key in keys:
        if isinstance(value, Mapping):
            value = value.get(key, "")
        elif isinstance(value, Sequence) and isinstance(key, int) and 0 <= key < len(value):
            value = value[key]
        else:
            raise TemplateError(f"index: {key!r} not found")
    return value


def _slice(value: Value, *bounds: int) -> Value:
    first, last = (*bounds, *(0, len(value))[len(bounds) :])[:2]
    if not 0 <= first <= last <= len(value):
        raise TemplateError("slice: out of range")
    return value[first:last]


FUNCTIONS: Final[Mapping[str, Callable[..., Value]]] = {
    "and": lambda *values: next((value for value in values if not value), values[-1]),
    "or": lambda *values: next((value for value in values if value), values[-1]),
    "not": operator.not_,
    "len": len,
    "index": _index,
    "slice": _slice,
    "print": _print,
    "printf": _printf,
    "println": lambda *values: " ".join(map(format_value, values)) + "\n",
    "html": lambda *values: html.escape(_print(*values)),
    "urlquery": lambda *values: quote_plus(_print(*values)),
    "eq": lambda first, *others: first in others,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
