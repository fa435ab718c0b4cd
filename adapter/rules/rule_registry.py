"""The rules in force: from the configuration file, ExternalMetric objects and prometheus-adapter files.

Each source is replaced independently of the others.
"""

import difflib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from adapter.decoding.problem import Problem
from adapter.rules.query_builder import snapshot_query
from adapter.rules.rule import Rule

_encode = msgspec.json.Encoder(enc_hook=str).encode  # rules contain mappings and are not hashable; their JSON text is
FILE_ORIGIN: Final = "configuration"  # origin of rules of the configuration file
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


class _Index(NamedTuple):
    rules: RuleSet
    origins: dict[int, str]
    by_query: dict[Hashable, list[Rule]]


class RuleRegistry:
    """All rules. A rule of an object takes precedence over rules of files, within the namespace of the object."""

    def __init__(
        self, rules: Iterable[Rule] = (), invalid_rules: Mapping[str, tuple[Problem, ...]] = MappingProxyType({})
    ) -> None:
        """Start with the rules of the configuration file, and the problems of its invalid rules by name."""
        self._file = tuple(rules)
        self._objects: dict[str, Rule] = {}
        self._imported: dict[str, tuple[Rule, ...]] = {}
        self._listeners: list[Callable[[tuple[Rule, ...]], None]] = []
        self.invalid_rules = invalid_rules
        self.reload_problems: tuple[Problem, ...] = ()
        """Problems of the newest configuration file, while the previous one stays in force."""

        self._cached_index: _Index | None = None

    @property
    def rules(self) -> RuleSet:
        return self._index().rules

    def set_file_rules(self, rules: Iterable[Rule]) -> None:
        """Replace the rules of the configuration file by those of a file without problems."""
        self.invalid_rules, self.reload_problems = {}, ()
        before, self._file = self._file, tuple(rules)
        self._notify(before, self._file)

    def reject_file(self, problems: tuple[Problem, ...]) -> None:
        """Store the problems of a newer configuration file; the rules of the previous file stay in force."""
        self.reload_problems = problems

    def set_object_rule(self, key: str, rule: Rule | None) -> None:
        """Replace the rule of the object with key ``namespace/name``; None: the object is deleted or invalid."""
        before = self._objects.pop(key, None)
        if rule is not None:
            self._objects[key] = rule
        if before != rule:
            self._notify((before,) if before else (), (rule,) if rule else ())

    def set_imported_rules(self, file: str, rules: Iterable[Rule]) -> None:
        """Replace the rules of a prometheus-adapter file; native rules take precedence over them."""
        before, self._imported[file] = self._imported.get(file, ()), tuple(rules)
        if before != self._imported[file]:
            self._notify(before, self._imported[file])

    def add_listener(self, listener: Callable[[tuple[Rule, ...]], None]) -> None:
        """Call ``listener`` on every change, with the removed and the added rules."""
        self._listeners.append(listener)

    def origin(self, rule: Rule) -> str:
        """Return the origin of a rule: the configuration, an object's ``namespace/name``, or an imported file."""
        return self._index().origins.get(id(rule), FILE_ORIGIN)

    def rules_for_query(self, key: Hashable) -> tuple[Rule, ...]:
        return tuple(self._index().by_query.get(key, ()))

    def _index(self) -> _Index:
        """Build the indexes lazily: objects of a cluster arrive one by one, and each arrival would rebuild them."""
        if self._cached_index is None:
            imported = [(rule, file) for file, rules in self._imported.items() for rule in rules]
            origins = {id(rule): key for key, rule in self._objects.items()}
            origins |= {id(rule): file for rule, file in imported}
            rules = RuleSet((*self._objects.values(), *self._file, *(rule for rule, _ in imported)))
            by_query: dict[Hashable, list[Rule]] = {}
            for rule in rules:
                if not rule.is_template:
                    by_query.setdefault(snapshot_query(rule).key, []).append(rule)
            self._cached_index = _Index(rules, origins, by_query)
        return self._cached_index

    def _notify(self, before: tuple[Rule, ...], after: tuple[Rule, ...]) -> None:
        self._cached_index = None
        old, new = ({_encode(rule): rule for rule in rules} for rules in (before, after))
        changed = (
            *(rule for text, rule in old.items() if text not in new),
            *(rule for text, rule in new.items() if text not in old),
        )
        if changed:
            for listener in tuple(self._listeners):
                listener(changed)
