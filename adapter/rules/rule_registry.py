"""The rules in force: those of the configuration file and those of objects, each replaceable without the others."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from adapter.rules.query_builder import whole
from adapter.rules.rule import Rule
from adapter.rules.rule_set import RuleSet

_in_full = msgspec.json.Encoder(enc_hook=str).encode
"""A rule's whole text, to compare many with many: rules hold mappings, and so cannot be the keys of one."""

FILE: Final = "configuration"
"""Where a rule comes from if no object defines it."""


class RuleRegistry:
    """All rules. An object's rule goes before the file's, in its own namespace and nowhere else."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._file = tuple(rules)
        self._objects: dict[str, Rule] = {}
        self._imported: dict[str, tuple[Rule, ...]] = {}
        self._listeners: list[Callable[[tuple[Rule, ...]], None]] = []
        self.broken: Mapping[str, tuple[str, ...]] = {}
        """Rules of the file that are not in force, with what is wrong with them."""

        self.trouble: tuple[str, ...] = ()
        """What is wrong with a newer file, while an older one is in force."""

        self._indexed: _Indexed | None = None

    @property
    def rules(self) -> RuleSet:
        """All rules in force."""
        return self._index().rules

    def use_file(self, rules: Iterable[Rule]) -> None:
        """Replace the file's rules."""
        before, self._file = self._file, tuple(rules)
        self._announce(before, self._file)

    def use_object(self, key: str, rule: Rule | None) -> None:
        """Replace the rule of an object, by its ``namespace/name``; None: it has none, or none that makes sense."""
        before = self._objects.pop(key, None)
        if rule is not None:
            self._objects[key] = rule
        if before != rule:
            self._announce((before,) if before else (), (rule,) if rule else ())

    def use_imported(self, file: str, rules: Iterable[Rule]) -> None:
        """Replace the rules that come from a file of another adapter; any rule of our own goes before them."""
        before, self._imported[file] = self._imported.get(file, ()), tuple(rules)
        if before != self._imported[file]:
            self._announce(before, self._imported[file])

    def tell(self, listener: Callable[[tuple[Rule, ...]], None]) -> None:
        """Call ``listener`` with the rules, old and new, that are not what they were."""
        self._listeners.append(listener)

    def origin(self, rule: Rule) -> str:
        """Say where a rule comes from: the configuration, or an object's ``namespace/name``."""
        return self._index().origins.get(id(rule), FILE)

    def asking(self, key: Hashable) -> tuple[Rule, ...]:
        """List the rules that ask this query."""
        return self._index().by_query.get(key, ())

    def _index(self) -> "_Indexed":
        """Give the indexes, made when they are next needed: a cluster's objects are told of one by one."""
        if self._indexed is None:
            imported = [(rule, file) for file, rules in self._imported.items() for rule in rules]
            origins = {id(rule): key for key, rule in self._objects.items()}
            origins |= {id(rule): file for rule, file in imported}
            rules = RuleSet((*self._objects.values(), *self._file, *(rule for rule, _ in imported)))
            self._indexed = _Indexed(rules, origins, _by_query(rules))
        return self._indexed

    def _announce(self, before: tuple[Rule, ...], after: tuple[Rule, ...]) -> None:
        self._indexed = None
        old, new = ({_in_full(rule): rule for rule in rules} for rules in (before, after))
        changed = (
            *(rule for text, rule in old.items() if text not in new),
            *(rule for text, rule in new.items() if text not in old),
        )
        if changed:
            for listener in tuple(self._listeners):
                listener(changed)


class _Indexed(NamedTuple):
    rules: RuleSet
    origins: dict[int, str]
    by_query: dict[Hashable, tuple[Rule, ...]]


def _by_query(rules: RuleSet) -> dict[Hashable, tuple[Rule, ...]]:
    found: dict[Hashable, list[Rule]] = {}
    for rule in rules:
        if not rule.is_template:
            found.setdefault(whole(rule).key, []).append(rule)
    return {key: tuple(asking) for key, asking in found.items()}
