"""Lookup of rules by name and namespace."""

import difflib
import heapq
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice, pairwise
from operator import itemgetter

from adapter.rules.rule import Rule

_ALL_NAMESPACES = ""
_MAX_NAME_LENGTH = 253
_MIN_SIMILARITY = 0.6
_MAX_SIMILAR_NAMES = 3
_MAX_CONSIDERED_NAMES = 2000
_MAX_LIKELY_NAMES = 200  # typing errors seldom change the first letters or the length by much
_MAX_COMPARED_NAMES = 5  # difflib needs about a millisecond for one name, and callers can make up any number of names
_MAX_CACHED_LOOKUPS = 1024  # an HPA with a wrong metric name repeats its request every 15 seconds


class RuleSet:
    """Rules by name. Case is ignored, because the HPA's client lower-cases metric names. Earlier rules win."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules = tuple(rules)
        self._by_namespace: dict[str, dict[str, tuple[int, Rule]]] = {}
        """Position and rule by namespace and name."""

        self._applicable: dict[str, list[Rule]] = {}
        """All rules by namespace, also those whose names earlier rules have."""

        for number, rule in enumerate(self._rules):
            for namespace in rule.namespaces or (_ALL_NAMESPACES,):
                self._applicable.setdefault(namespace, []).append(rule)
                by_name = self._by_namespace.setdefault(namespace, {})
                for name in rule.names:
                    by_name.setdefault(name.lower(), (number, rule))

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def find(self, namespace: str, metric: str) -> Rule | None:
        name = metric.lower()
        scopes = (self._by_namespace.get(key, {}) for key in (namespace, _ALL_NAMESPACES))
        candidates = [by_name[name] for by_name in scopes if name in by_name]
        return min(candidates, key=itemgetter(0))[1] if candidates else None

    def applicable(self, namespace: str) -> Iterator[Rule]:
        """Return the rules that can be read in a namespace."""
        return chain(self._applicable.get(namespace, ()), self._applicable.get(_ALL_NAMESPACES, ()))

    def namespaces_with(self, metric: str) -> set[str]:
        """Return the namespaces in which only rules for single namespaces define a metric."""
        found = {namespace for namespace, by_name in self._by_namespace.items() if metric.lower() in by_name}
        return found - {_ALL_NAMESPACES}

    def names(self, namespace: str) -> tuple[str, ...]:
        """Return the names of the metrics that can be read in a namespace, sorted."""
        return tuple(sorted({rule.name for rule in self.applicable(namespace)}))

    def similar_names(self, namespace: str, metric: str) -> tuple[str, ...]:
        """Return names similar to this one that can be read in the namespace, most similar first."""
        return similar_names(self.applicable(namespace), metric)


class LayeredRules:
    """The rules in force: those of objects, and below them those of files.

    A change of one object takes the same time however many rules there are. Tenants change their objects as often as
    they like, so a change must not cost an index of the rules of all tenants.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Rule]] = {}
        """Rules of objects by namespace and name."""

        self._files = RuleSet()
        self._changes = 0
        self._file_version = 0
        self._versions: dict[str, int] = {}
        self._similar = lru_cache(_MAX_CACHED_LOOKUPS)(self._find_similar)

    def __iter__(self) -> Iterator[Rule]:
        for by_name in self._objects.values():
            yield from {id(rule): rule for rule in by_name.values()}.values()
        yield from self._files

    def version(self, namespace: str) -> int:
        """Return a number that increases whenever the rules change that can be read in a namespace."""
        return max(self._file_version, self._versions.get(namespace, 0))

    def find(self, namespace: str, metric: str) -> Rule | None:
        rule = self._objects[namespace].get(metric.lower()) if namespace in self._objects else None
        return self._files.find(namespace, metric) if rule is None else rule

    def namespaces_with(self, metric: str) -> tuple[str, ...]:
        name = metric.lower()
        return tuple(
            sorted(
                {
                    *(namespace for namespace, by_name in self._objects.items() if name in by_name),
                    *self._files.namespaces_with(metric),
                }
            )
        )

    def names(self, namespace: str) -> tuple[str, ...]:
        """Return the names of the metrics that can be read in a namespace, sorted."""
        return tuple(sorted({rule.name for rule in self._applicable(namespace)}))

    def similar_names(self, namespace: str, metric: str) -> tuple[str, ...]:
        """Return names similar to this one that can be read in the namespace, most similar first."""
        return self._similar(self.version(namespace), namespace, metric.lower()[:_MAX_NAME_LENGTH])

    def set_file_rules(self, rules: Iterable[Rule]) -> None:
        self._files = RuleSet(rules)
        self._file_version = self._next_version()

    def replace(self, before: Rule | None, after: Rule | None) -> None:
        """Replace the rule of an object; it takes precedence over another object's rule that was set before."""
        for rule in (before, after):
            for namespace in rule.namespaces if rule else ():
                self._versions[namespace] = self._next_version()
        for namespace, name in _places(before):
            if self._objects.get(namespace, {}).get(name) is before:
                del self._objects[namespace][name]
                if not self._objects[namespace]:
                    del self._objects[namespace]
        if after is not None:
            for namespace, name in _places(after):
                self._objects.setdefault(namespace, {})[name] = after

    def _next_version(self) -> int:
        self._changes += 1
        return self._changes

    def _applicable(self, namespace: str) -> Iterator[Rule]:
        return chain(self._objects.get(namespace, {}).values(), self._files.applicable(namespace))

    def _find_similar(self, version: int, namespace: str, wanted: str) -> tuple[str, ...]:
        del version  # part of the key of the cache
        return similar_names(self._applicable(namespace), wanted)


def similar_names(rules: Iterable[Rule], metric: str) -> tuple[str, ...]:
    """Return the names of rules that are similar to this one, most similar first."""
    wanted = metric.lower()[:_MAX_NAME_LENGTH]
    considered = islice((name for rule in rules for name in rule.names), _MAX_CONSIDERED_NAMES)
    names = {name.lower(): name for name in considered}
    likely = heapq.nsmallest(
        _MAX_LIKELY_NAMES, names, key=lambda name: (name[:2] != wanted[:2], abs(len(name) - len(wanted)))
    )
    pairs = _letter_pairs(wanted)
    compared = heapq.nsmallest(_MAX_COMPARED_NAMES, likely, key=lambda name: len(pairs ^ _letter_pairs(name)))
    similar = difflib.get_close_matches(wanted, compared, _MAX_SIMILAR_NAMES, _MIN_SIMILARITY)
    return tuple(names[name] for name in similar)


def _letter_pairs(name: str) -> set[str]:
    return set(map("".join, pairwise(name)))


def _places(rule: Rule | None) -> Iterator[tuple[str, str]]:
    """Yield the namespaces and names under which the rule of an object is found."""
    for namespace in rule.namespaces if rule else ():
        for name in rule.names if rule else ():
            yield namespace, name.lower()
