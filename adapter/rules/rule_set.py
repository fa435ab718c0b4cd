"""Lookup of rules by the metric name that an HPA requests."""

import difflib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import itemgetter

from adapter.rules.rule import Rule

_ALL_NAMESPACES = ""
_MAX_NAME_LENGTH = 253
_MIN_SIMILARITY = 0.6
_MAX_SIMILAR_NAMES = 3
_MAX_COMPARED_NAMES = 500  # difflib is slow, and typing errors seldom change the first letters or the length by much
_MAX_CACHED_LOOKUPS = 1024  # an HPA with a wrong metric name repeats its request every 15 seconds


class RuleSet:
    """Rules by name. Case is ignored, because the HPA's client lower-cases metric names. Earlier rules win."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)
        self._by_name: dict[str, dict[str, tuple[int, Rule]]] = {}
        """Position and rule by name and namespace, so that a name used in many namespaces is found without a scan."""

        self._similar = lru_cache(_MAX_CACHED_LOOKUPS)(self._find_similar)
        for number, rule in enumerate(self._rules):
            for name in rule.names:
                by_namespace = self._by_name.setdefault(name.lower(), {})
                for namespace in rule.namespaces or (_ALL_NAMESPACES,):
                    by_namespace.setdefault(namespace, (number, rule))

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def find(self, namespace: str, metric: str) -> Rule | None:
        by_namespace = self._by_name.get(metric.lower(), {})
        candidates = [by_namespace[key] for key in (namespace, _ALL_NAMESPACES) if key in by_namespace]
        return min(candidates, key=itemgetter(0))[1] if candidates else None

    def namespaces_with(self, metric: str) -> tuple[str, ...]:
        return tuple(sorted(namespace for namespace in self._by_name.get(metric.lower(), ()) if namespace))

    def names(self, namespace: str) -> tuple[str, ...]:
        """Return the names of the metrics that can be read in a namespace, sorted."""
        return tuple(sorted({rule.name for rule in self._rules if rule.applies_to(namespace)}))

    def similar_names(self, namespace: str, metric: str) -> tuple[str, ...]:
        """Return names similar to this one that can be read in the namespace, most similar first."""
        return self._similar(namespace, metric.lower()[:_MAX_NAME_LENGTH])

    def _find_similar(self, namespace: str, wanted: str) -> tuple[str, ...]:
        names = {name.lower(): name for rule in self._rules if rule.applies_to(namespace) for name in rule.names}
        likely = sorted(names, key=lambda name: (name[:2] != wanted[:2], abs(len(name) - len(wanted))))
        similar = difflib.get_close_matches(wanted, likely[:_MAX_COMPARED_NAMES], _MAX_SIMILAR_NAMES, _MIN_SIMILARITY)
        return tuple(names[name] for name in similar)
