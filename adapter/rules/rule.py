"""Rules: this metric, in these namespaces, comes from there. And how to find one by the name an HPA asks for."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from autoscaler.names import path_segment_problems
from autoscaler.types.record import Record

INDEX = "externalmetrics"
"""The one resource that discovery shows; reading it lists a namespace's metrics, so no metric can have that name."""

_SUBRESOURCE = "the API server authorizes a request for it as one for the namespace's own {name!r} subresource"
_TAKEN = {
    "status": _SUBRESOURCE.format(name="status"),
    "finalize": _SUBRESOURCE.format(name="finalize"),
    INDEX: "it is the name under which all metrics of a namespace are listed",
}
_LONGEST = 253
_CLOSE_ENOUGH = 0.6
_AT_MOST = 3


class Series(Record, frozen=True):
    """One fixed number of a static metric."""

    value: float
    labels: Mapping[str, str] = {}
    age: timedelta = timedelta()
    """How old the number says it is; to rehearse what an old one does."""


class Rule(Record, frozen=True):
    """What one metric is."""

    name: str
    static: tuple[Series, ...] = ()
    """Fixed numbers, one for each series."""

    namespaces: tuple[str, ...] = ()
    """Where it can be read; nowhere named means everywhere."""

    max_age: timedelta = timedelta(minutes=5)
    """An older number is an error. An HPA never looks at the time, so nobody else would notice."""

    def covers(self, namespace: str) -> bool:
        """Say whether the metric can be read in this namespace."""
        return not self.namespaces or namespace in self.namespaces


class RuleSet:
    """All rules, found by name in any case: an HPA's client lower-cases what the user wrote."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._by_name: dict[str, tuple[Rule, ...]] = {}
        for rule in rules:
            name = rule.name.lower()
            self._by_name[name] = (*self._by_name.get(name, ()), rule)

    def find(self, namespace: str, metric: str) -> Rule | None:
        """Return the rule for a metric here, or None."""
        return next((rule for rule in self._by_name.get(metric.lower(), ()) if rule.covers(namespace)), None)

    def names(self, namespace: str) -> tuple[str, ...]:
        """List what can be read here, in order."""
        return tuple(sorted({r.name for rules in self._by_name.values() for r in rules if r.covers(namespace)}))

    def nearest(self, namespace: str, metric: str) -> tuple[str, ...]:
        """List names like this one that can be read here, most alike first."""
        names = {name.lower(): name for name in self.names(namespace)}
        alike = difflib.get_close_matches(metric.lower()[:_LONGEST], names, _AT_MOST, _CLOSE_ENOUGH)
        return tuple(names[name] for name in alike)


def problems(rules: Iterable[Rule], at: str = "rules") -> Iterator[str]:
    """Say everything that is wrong with these rules, each with its path."""
    seen: dict[tuple[str, str], int] = {}
    for number, rule in enumerate(rules):
        path = f"{at}[{number}]"
        yield from (f"{path}.name: {problem}" for problem in name_problems(rule.name))
        for namespace in rule.namespaces or ("",):
            earlier = seen.setdefault((rule.name.lower(), namespace), number)
            if earlier != number:
                where = f" in namespace {namespace!r}" if namespace else ""
                yield f"{path}.name: {rule.name!r} is defined{where} by {at}[{earlier}] already"
        if not rule.static:
            yield f"{path}.static: at least one series is needed"


def name_problems(name: str) -> list[str]:
    """Say what keeps a text from being a metric's name."""
    if not name:
        return ["must not be empty"]
    if why := _TAKEN.get(name.lower()):
        return [f"{name!r} cannot be a metric's name: {why}"]
    found = [f"{name!r} {problem}" for problem in path_segment_problems(name)]
    if len(name) > _LONGEST:
        found.append(f"must be no more than {_LONGEST} characters")
    if not name.isprintable():
        found.append(f"{name!r} may not contain characters that do not print")
    return found
