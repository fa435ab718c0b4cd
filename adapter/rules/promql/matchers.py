"""PromQL's quoting, and label selectors as matchers that mean the same.

To Prometheus a label that is absent and one that is empty are the same; to Kubernetes they are not. No series of
Prometheus has an empty label, so what Kubernetes asks of an empty one is always false, or always true.
"""

import re
from collections.abc import Iterator
from typing import Final

from autoscaler.values.requirement import Requirement
from autoscaler.values.selector import Selector

_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_META: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL: Final = re.compile(r'[\\"\x00-\x1f\x7f]')
_TRANSLATED: Final = frozenset({"=", "==", "in", "!=", "notin", "exists", "!"})


class NotExpressible(ValueError):
    """PromQL has no matcher that means this."""


def quoted(value: str) -> str:
    """Write a text as a PromQL string: whatever is in it, it stays one string."""
    whole = value.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair is no text to Prometheus
    return f'"{_SPECIAL.sub(_escaped, whole)}"'


def literal(value: str) -> str:
    """Write a text as a regular expression that matches just it, in RE2's syntax."""
    return _META.sub(r"\\\g<0>", value)


def is_label(name: str) -> bool:
    """Say whether PromQL can name this label without quotes."""
    return _LABEL.fullmatch(name) is not None


def equals(label: str, value: str) -> str:
    """Write the matcher for one value of a label."""
    return f"{label}={quoted(value)}"


def matchers(selector: Selector) -> tuple[str, ...]:
    """Write a selector as matchers with the same meaning; raise ``NotExpressible`` where there are none."""
    if not selector.selectable:
        raise NotExpressible("a selector that selects nothing")
    return tuple(matcher for requirement in selector.requirements for matcher in _matchers(requirement))


def _matchers(requirement: Requirement) -> Iterator[str]:
    key, operator = requirement.key, requirement.operator
    if operator not in _TRANSLATED:
        raise NotExpressible(f"{str(requirement)!r} compares numbers, and PromQL compares labels as text only")
    if not is_label(key):
        raise NotExpressible(f"{key!r} cannot be the name of a label in PromQL")
    values = sorted(set(requirement.values) - {""})
    match operator:
        case "exists":
            yield f'{key}!=""'
        case "!":
            yield f'{key}=""'
        case "=" | "==" | "in":
            yield from _one_of(key, values)
        case _:
            yield from _none_of(key, values)


def _one_of(key: str, values: list[str]) -> Iterator[str]:
    if not values:
        yield from (f'{key}=""', f'{key}!=""')  # no series has an empty label
    elif len(values) == 1:
        yield equals(key, values[0])
    else:
        yield f"{key}=~{quoted('|'.join(map(literal, values)))}"


def _none_of(key: str, values: list[str]) -> Iterator[str]:
    if len(values) == 1:
        yield f"{key}!={quoted(values[0])}"
    elif values:
        yield f"{key}!~{quoted('|'.join(map(literal, values)))}"


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    return _ESCAPES.get(character) or f"\\x{ord(character):02x}"
