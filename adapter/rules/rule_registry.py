"""The rules in force: from the configuration file, ExternalMetric objects and prometheus-adapter files.

Each source is replaced independently of the others.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import msgspec

from adapter.decoding.problem import Problem
from adapter.rules.query_builder import snapshot_query
from adapter.rules.rule import Rule
from adapter.rules.rule_set import LayeredRules

_encode = msgspec.json.Encoder(enc_hook=str).encode  # rules contain mappings and are not hashable; their JSON text is
FILE_ORIGIN: Final = "configuration"  # origin of rules of the configuration file


class _Index:
    """Rules by query, and their origins by identity."""

    def __init__(self) -> None:
        self.by_query: dict[Hashable, list[Rule]] = {}
        self.origins: dict[int, str] = {}

    def add(self, rule: Rule, origin: str) -> None:
        self.origins[id(rule)] = origin
        if not rule.is_template:
            self.by_query.setdefault(snapshot_query(rule).key, []).append(rule)

    def remove(self, rule: Rule) -> None:
        del self.origins[id(rule)]
        if not rule.is_template:
            key = snapshot_query(rule).key
            self.by_query[key] = [other for other in self.by_query[key] if other is not rule]
            if not self.by_query[key]:
                del self.by_query[key]


class RuleRegistry:
    """All rules. A rule of an object takes precedence over rules of files, within the namespace of the object."""

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        invalid_rules: Mapping[str, tuple[Problem, ...]] = MappingProxyType({}),
        invalid_in: Mapping[str, frozenset[str]] = MappingProxyType({}),
    ) -> None:
        """Start with the rules of the configuration file, and the problems of its invalid rules by name.

        ``invalid_in`` are the namespaces of the invalid rules that are not for all namespaces.
        """
        self._file = tuple(rules)
        self._objects: dict[str, Rule] = {}
        self._imported: dict[str, tuple[Rule, ...]] = {}
        self._refused_imports: dict[str, Mapping[str, str]] = {}
        """Why the rules of a prometheus-adapter file are refused, by file and metric in lower case."""

        self._refused_objects: dict[str, str] = {}
        """Why objects are refused, by key in lower case."""

        self._listeners: list[Callable[[tuple[Rule, ...]], None]] = []
        self.invalid_rules = invalid_rules
        self._invalid_in = invalid_in
        self.reload_problems: tuple[Problem, ...] = ()
        """Problems of the newest configuration file, while the previous one stays in force."""

        self.rules: Final = LayeredRules()
        self._object_index = _Index()
        self._file_index = _Index()
        self._index_files()

    def set_file_rules(self, rules: Iterable[Rule]) -> None:
        """Replace the rules of the configuration file by those of a file without problems."""
        self.invalid_rules, self.reload_problems = {}, ()
        before, self._file = self._file, tuple(rules)
        self._index_files()
        self._notify(before, self._file)

    def reject_file(self, problems: tuple[Problem, ...]) -> None:
        """Store the problems of a newer configuration file; the rules of the previous file stay in force."""
        self.reload_problems = problems

    def set_object_rule(self, key: str, rule: Rule | None) -> None:
        """Replace the rule of the object with key ``namespace/name``; None: the object is deleted or invalid."""
        before = self._objects.pop(key, None)
        if before is not None:
            self._object_index.remove(before)
        if rule is not None:
            self._objects[key] = rule
            self._object_index.add(rule, key)
        self.rules.replace(before, rule)
        if before != rule:
            self._notify((before,) if before else (), (rule,) if rule else ())

    def refuse_object(self, key: str, reason: str) -> None:
        """Store why the object with key ``namespace/name`` defines no metric; an empty reason: it does, or is gone."""
        self._refused_objects.pop(key.lower(), None)
        if reason:
            self._refused_objects[key.lower()] = reason

    def refusal(self, namespace: str, metric: str) -> str:
        """Return why the rule or the object that defines a metric is not in force; empty if none does.

        Every caller who may read the metric gets the reason, so it has no values of the configuration.
        """
        if reason := self._refused_objects.get(f"{namespace}/{metric}".lower()):
            return f"ExternalMetric {metric!r}: {reason}"
        for name, problems in self.invalid_rules.items():
            if name.lower() == metric.lower() and namespace in self._invalid_in.get(name, (namespace,)):
                reasons = "; ".join(str(replace(problem, value=None)) for problem in problems)
                return f"rule {name!r} of the configuration: {reasons}"
        refused = (f"rule of {file}: {reason}" for file, name, reason in self.refused_imports if name == metric.lower())
        return next(refused, "")

    @property
    def refused_imports(self) -> Iterator[tuple[str, str, str]]:
        """The refused rules of prometheus-adapter files: file, metric in lower case, and reason."""
        for file, reasons in self._refused_imports.items():
            yield from ((file, metric, reason) for metric, reason in reasons.items())

    def set_imported_rules(
        self, file: str, rules: Iterable[Rule], refused: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Replace the rules of a prometheus-adapter file; native rules take precedence over them.

        ``refused`` is why rules of the file are refused, by metric in lower case.
        """
        self._refused_imports[file] = refused
        before, self._imported[file] = self._imported.get(file, ()), tuple(rules)
        self._index_files()
        if before != self._imported[file]:
            self._notify(before, self._imported[file])

    def add_listener(self, listener: Callable[[tuple[Rule, ...]], None]) -> None:
        """Call ``listener`` on every change, with the removed and the added rules."""
        self._listeners.append(listener)

    def origin(self, rule: Rule) -> str:
        """Return the origin of a rule: the configuration, an object's ``namespace/name``, or an imported file."""
        origin = self._object_index.origins.get(id(rule))
        return self._file_index.origins.get(id(rule), FILE_ORIGIN) if origin is None else origin

    def rules_for_query(self, key: Hashable) -> tuple[Rule, ...]:
        return tuple(rule for index in (self._object_index, self._file_index) for rule in index.by_query.get(key, ()))

    def _index_files(self) -> None:
        imported = [(rule, file) for file, rules in self._imported.items() for rule in rules]
        self.rules.set_file_rules((*self._file, *(rule for rule, _ in imported)))
        self._file_index = _Index()
        for rule, origin in (*((rule, FILE_ORIGIN) for rule in self._file), *imported):
            self._file_index.add(rule, origin)

    def _notify(self, before: tuple[Rule, ...], after: tuple[Rule, ...]) -> None:
        old, new = ({_encode(rule): rule for rule in rules} for rules in (before, after))
        changed = (
            *(rule for text, rule in old.items() if text not in new),
            *(rule for text, rule in new.items() if text not in old),
        )
        if changed:
            for listener in tuple(self._listeners):
                listener(changed)
