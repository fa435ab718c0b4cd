"""PromQL quoting, and translation of Kubernetes label selectors into PromQL label matchers.

Prometheus treats a label with an empty value as absent; Kubernetes does not. No series in Prometheus has an empty
label, so a Kubernetes requirement on an empty value is either always false or always true.
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
_SUPPORTED_OPERATORS: Final = frozenset({"=", "==", "in", "!=", "notin", "exists", "!"})


class NotExpressible(ValueError):
    """PromQL has no matcher with the meaning of the requirement."""


def quote(value: str) -> str:
    """Return a text as a PromQL string literal, with all special characters escaped."""
    valid = value.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate is not valid UTF-8
    return f'"{_SPECIAL.sub(_escape, valid)}"'


def escape_regex(value: str) -> str:
    """Return an RE2 regular expression that matches exactly this text."""
    return _META.sub(r"\\\g<0>", value)


def equality_matcher(label: str, value: str) -> str:
    return f"{label}={quote(value)}"


def selector_matchers(selector: Selector) -> tuple[str, ...]:
    """Return matchers with the meaning of a selector; raise ``NotExpressible`` if there are none."""
    if not selector.selectable:
        raise NotExpressible("the selector matches nothing")
    return tuple(matcher for requirement in selector.requirements for matcher in _matchers(requirement))


def _matchers(requirement: Requirement) -> Iterator[str]:
    key, operator = requirement.key, requirement.operator
    if operator not in _SUPPORTED_OPERATORS:
        raise NotExpressible(f"{str(requirement)!r} compares numbers, and PromQL only compares labels as text")
    if not _LABEL.fullmatch(key):
        raise NotExpressible(f"{key!r} is not a valid PromQL label name")
    values = sorted(set(requirement.values) - {""})
    is_positive = operator in {"=", "==", "in"}
    if operator in {"exists", "!"}:
        yield f'{key}!=""' if operator == "exists" else f'{key}=""'
    elif len(values) > 1:
        yield f"{key}{'=~' if is_positive else '!~'}{quote('|'.join(map(escape_regex, values)))}"
    elif values:
        yield f"{key}{'=' if is_positive else '!='}{quote(values[0])}"
    elif is_positive:
        yield from (f'{key}=""', f'{key}!=""')  # contradictory on purpose: no series has an empty label


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _ESCAPES.get(character) or f"\\x{ord(character):02x}"
