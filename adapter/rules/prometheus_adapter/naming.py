"""From a series' name to the metric's, by Go's regular expressions and Go's ``$1``."""

import re
from collections.abc import Iterable
from typing import Final

from adapter.rules.prometheus_adapter.discovery_rule import DiscoveryRule
from adapter.rules.promql.lexer import PromqlError, tokens

_REFERENCE: Final = re.compile(r"\$(?:\$|(?P<plain>\w+)|\{(?P<braced>\w+)\})", re.ASCII)
_POSIX: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "digit": "0-9", "lower": "a-z", "upper": "A-Z", "word": r"\w",
    "space": r"\s", "xdigit": "0-9A-Fa-f", "punct": r"!-/:-@\[-`{-~",
}  # fmt: skip
_IN_CLASS: Final = re.compile(r"\[:(\w+):\]")
_META: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")


class PatternError(ValueError):
    """A regular expression that cannot be used."""


def compiled(pattern: str) -> re.Pattern[str]:
    """Make a regular expression of one in RE2's syntax, as far as names of series need it."""
    said = _IN_CLASS.sub(lambda match: _POSIX.get(match[1], match[0]), pattern)
    said = said.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!").replace(r"\z", r"\Z")
    try:
        return re.compile(said, re.ASCII)
    except re.error as error:
        raise PatternError(f"{pattern!r} is not a regular expression that we know: {error}") from None


class Naming:
    """The names of one rule."""

    def __init__(self, rule: DiscoveryRule) -> None:
        self._matches = compiled(rule.name.matches or ".*")
        self._filters = [(compiled(each.is_ or each.is_not), bool(each.is_)) for each in rule.series_filters]
        if any(bool(each.is_) == bool(each.is_not) for each in rule.series_filters):
            raise PatternError("seriesFilters: each needs one of is and isNot")
        groups = self._matches.groups
        if not rule.name.as_ and groups > 1:
            raise PatternError(f"name.as is needed: name.matches has {groups} groups")
        self.template = rule.name.as_ or ("$1" if groups else "$0")

    def accepts(self, series: str) -> bool:
        """Say whether the rule is about a series of this name."""
        wanted = all((pattern.search(series) is not None) is positive for pattern, positive in self._filters)
        return wanted and self._matches.search(series) is not None

    def name(self, series: str) -> str:
        """Return the metric's name for a series that is accepted."""
        match = self._matches.search(series)
        return "" if match is None else _REFERENCE.sub(lambda found: _group(match, found), self.template)

    def names(self, series: Iterable[str]) -> dict[str, str]:
        """Return the metrics' names and the series behind them; of two series with one name the last wins."""
        return {self.name(each): each for each in series if self.accepts(each)}


def _group(match: re.Match[str], found: re.Match[str]) -> str:
    key = found["plain"] or found["braced"]
    if key is None:
        return "$"
    if key.isdigit():
        return (match[int(key)] or "") if int(key) <= match.re.groups else ""
    return match.groupdict().get(key) or ""  # as in Go, what there is not is empty: $1_total is a group of that name


def pinned(series_query: str) -> str:
    """Return the one name that all series of a query have; empty if there may be several."""
    try:
        found = tokens(series_query)
    except PromqlError:
        return ""
    if found and found[0].kind == "name":
        is_selector = len(found) == 1 or (found[1].text == "{" and found[-1].text == "}")
        return found[0].text if is_selector else ""  # not a selector of series: Prometheus will say so
    for label, sign, value in zip(found, found[1:], found[2:], strict=False):
        if label.text == "__name__" and value.kind == "string":
            text = value.text[1:-1]
            if sign.text == "=~":
                text = text.removeprefix("^").removesuffix("$")
            if sign.text in {"=", "=~"} and not _META.search(text):
                return text
    return ""
