"""All rules, and how to find one by the name an HPA asks for."""

import difflib
from collections.abc import Iterable, Iterator

from adapter.rules.rule import Rule

_LONGEST = 253
_CLOSE_ENOUGH = 0.6
_AT_MOST = 3


class RuleSet:
    """Rules by name in any case, because an HPA's client lower-cases what the user wrote. Earlier ones win."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)
        self._by_name: dict[str, tuple[Rule, ...]] = {}
        for rule in self._rules:
            for name in dict.fromkeys(each.lower() for each in rule.names):
                self._by_name[name] = (*self._by_name.get(name, ()), rule)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def find(self, namespace: str, metric: str) -> Rule | None:
        """Return the rule for a metric here, or None."""
        return next((rule for rule in self._by_name.get(metric.lower(), ()) if rule.covers(namespace)), None)

    def elsewhere(self, metric: str) -> tuple[str, ...]:
        """List the namespaces that do have a metric of this name."""
        found = self._by_name.get(metric.lower(), ())
        return tuple(sorted({namespace for rule in found for namespace in rule.namespaces}))

    def names(self, namespace: str) -> tuple[str, ...]:
        """List what can be read here, in order."""
        return tuple(sorted({rule.name for rule in self._rules if rule.covers(namespace)}))

    def nearest(self, namespace: str, metric: str) -> tuple[str, ...]:
        """List names like this one that can be read here, most alike first."""
        names = {name.lower(): name for rule in self._rules if rule.covers(namespace) for name in rule.names}
        alike = difflib.get_close_matches(metric.lower()[:_LONGEST], names, _AT_MOST, _CLOSE_ENOUGH)
        return tuple(names[name] for name in alike)
