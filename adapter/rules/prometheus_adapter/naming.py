"""Derivation of metric names from series names, with the regular expressions and ``$1`` references of Go."""

import re
from collections.abc import Iterable
from typing import Final

from adapter.rules.prometheus_adapter.discovery_rule import DiscoveryRule
from adapter.rules.promql.errors import PromqlError
from adapter.rules.promql.expression import NAME_LABEL, TimeModifiers, VectorSelector
from adapter.rules.promql.parser import parse

_REFERENCE: Final = re.compile(r"\$(?:\$|(?P<plain>\w+)|\{(?P<braced>\w+)\})", re.ASCII)
_POSIX_CLASSES: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "digit": "0-9", "lower": "a-z", "upper": "A-Z", "word": r"\w",
    "space": r"\s", "xdigit": "0-9A-Fa-f", "punct": r"!-/:-@\[-`{-~",
}  # fmt: skip
_POSIX_CLASS: Final = re.compile(r"\[:(\w+):\]")
_META: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")


class NamingError(ValueError):
    """The name or the filters of a rule cannot be used."""


def compile_re2(pattern: str) -> re.Pattern[str]:
    """Compile a regular expression in RE2 syntax, as far as series names need it."""
    translated = _POSIX_CLASS.sub(lambda match: _POSIX_CLASSES.get(match[1], match[0]), pattern)
    translated = translated.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
    try:
        return re.compile(translated.replace(r"\z", r"\Z"), re.ASCII)
    except re.error as error:
        raise NamingError(f"unsupported regular expression {pattern!r}: {error}") from None


class MetricNaming:
    """The metric names of one rule."""

    def __init__(self, rule: DiscoveryRule) -> None:
        self._matches = compile_re2(rule.name.matches or ".*")
        self._filters = [(compile_re2(each.is_ or each.is_not), bool(each.is_)) for each in rule.series_filters]
        if any(bool(each.is_) == bool(each.is_not) for each in rule.series_filters):
            raise NamingError("seriesFilters: each filter requires either is or isNot")
        groups = self._matches.groups
        if not rule.name.as_ and groups > 1:
            raise NamingError(f"name.as is required, because name.matches has {groups} groups")
        self.template = rule.name.as_ or ("$1" if groups else "$0")

    def name(self, series: str) -> str | None:
        """Return the metric name of a series; None if a filter or the name pattern excludes the series."""
        match = self._matches.search(series)
        is_accepted = all((pattern.search(series) is not None) is positive for pattern, positive in self._filters)
        if match is None or not is_accepted:
            return None
        return _REFERENCE.sub(lambda reference: _group(match, reference), self.template)

    def names(self, series: Iterable[str]) -> dict[str, str]:
        """Return series names by metric name; of two series with the same metric name, the last one wins."""
        return {name: each for each in series if (name := self.name(each)) is not None}


def _group(match: re.Match[str], reference: re.Match[str]) -> str:
    key = reference["plain"] or reference["braced"]
    if key is None:
        return "$"
    if key.isdigit():
        return (match[int(key)] or "") if int(key) <= match.re.groups else ""
    return match.groupdict().get(key) or ""  # as in Go, $1_total is a group named "1_total"; a missing group is empty


def single_series_name(series_query: str) -> str:
    """Return the name that all series of a query have; empty if there may be several names."""
    try:
        selector = parse(series_query)
    except PromqlError:
        return ""
    if not isinstance(selector, VectorSelector) or selector.range or selector.time != TimeModifiers():
        return ""  # Prometheus will reject any other expression
    if selector.name:
        return selector.name
    for matcher in selector.matchers:
        if matcher.label == NAME_LABEL and matcher.operator in {"=", "=~"}:
            name = matcher.value
            if matcher.operator == "=~":
                name = name.removeprefix("^").removesuffix("$")
            if not _META.search(name):
                return name
    return ""
