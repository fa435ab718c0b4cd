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

Value: TypeAlias = Any  # values are typed dynamically, as in Go templates
_VERB: Final = re.compile(r"%[-+# 0]*+(?P<width>\d*+)(?:\.(?P<precision>\d++))?(?P<verb>[a-zA-Z%])")
_MAX_WIDTH_DIGITS: Final = 3


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
    return re.sub(r"\\u00([01][0-9a-f]|7f)", r"\\x\1", json.dumps(format_value(value), ensure_ascii=False))


_FORMATS: Final = {"s": format_value, "v": format_value, "t": format_value, "q": quote}


def _printf(form: str, *values: object) -> str:
    """Format as Go's ``Sprintf`` does, but raise an error where Go would write ``%!d(MISSING)`` into the query."""
    matches = list(_VERB.finditer(form))
    if any(max(len(each["width"]), len(each["precision"] or "")) > _MAX_WIDTH_DIGITS for each in matches):
        raise TemplateError("a width or precision has more than 3 digits")
    verbs = [match["verb"] for match in matches if match["verb"] != "%"]
    if len(verbs) != len(values):
        raise TemplateError(f"{len(verbs)} verbs, but {len(values)} values")
    formatted = (
        _FORMATS[verb](value) if verb in _FORMATS else value for verb, value in zip(verbs, values, strict=True)
    )
    template = _VERB.sub(lambda verb: f"{verb[0][:-1]}s" if verb["verb"] in _FORMATS else verb[0], form)
    return template % tuple(formatted)


def _print(*values: object) -> str:
    text = ""
    for previous, value in pairwise(("", *values)):
        # Go's Sprint puts a space between two values when neither is a string.
        separator = "" if isinstance(value, str) or isinstance(previous, str) else " "
        text += separator + format_value(value)
    return text


def _index(value: Value, *keys: Value) -> Value:
    for key in keys:
        if isinstance(value, Mapping):
            value = value.get(key, "")
        elif isinstance(value, Sequence) and isinstance(key, int) and 0 <= key < len(value):
            value = value[key]
        else:
            raise TemplateError(f"{key!r} not found")
    return value


def _slice(value: Value, *bounds: int) -> Value:
    first, last = (*bounds, *(0, len(value))[len(bounds) :])[:2]
    if not 0 <= first <= last <= len(value):
        raise TemplateError("out of range")
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
