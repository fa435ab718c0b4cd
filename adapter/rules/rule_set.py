"""All rules, and how to find one by the name an HPA asks for."""

import difflib
from collections.abc import Iterable, Iterator
from operator import itemgetter

from adapter.rules.rule import Rule

_EVERYWHERE = ""
_LONGEST = 253
_CLOSE_ENOUGH = 0.6
_AT_MOST = 3
_LOOKED_AT = 500  # to compare texts is slow, and a typing mistake seldom changes a name's beginning or length by much
_REMEMBERED = 1024  # whoever asks for a wrong name asks again every fifteen seconds


class RuleSet:
    """Rules by name in any case, because an HPA's client lower-cases what the user wrote. Earlier ones win."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)
        self._by_name: dict[str, dict[str, tuple[int, Rule]]] = {}
        """By name and namespace, the empty one standing for everywhere; a thousand teams may use one name."""

        self._nearest: dict[tuple[str, str], tuple[str, ...]] = {}
        for number, rule in enumerate(self._rules):
            for name in rule.names:
                places = self._by_name.setdefault(name.lower(), {})
                for namespace in rule.namespaces or (_EVERYWHERE,):
                    places.setdefault(namespace, (number, rule))

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def find(self, namespace: str, metric: str) -> Rule | None:
        """Return the rule for a metric here, or None."""
        places = self._by_name.get(metric.lower())
        if places is None:
            return None
        here, everywhere = places.get(namespace), places.get(_EVERYWHERE)
        if here is None or everywhere is None:
            found = here or everywhere
            return None if found is None else found[1]
        return min(here, everywhere, key=itemgetter(0))[1]

    def elsewhere(self, metric: str) -> tuple[str, ...]:
        """List the namespaces that do have a metric of this name."""
        return tuple(sorted(namespace for namespace in self._by_name.get(metric.lower(), ()) if namespace))

    def names(self, namespace: str) -> tuple[str, ...]:
        """List what can be read here, in order."""
        return tuple(sorted({rule.name for rule in self._rules if rule.covers(namespace)}))

    def nearest(self, namespace: str, metric: str) -> tuple[str, ...]:
        """List names like this one that can be read here, most alike first."""
        asked = metric.lower()[:_LONGEST]
        if (namespace, asked) not in self._nearest:
            if len(self._nearest) >= _REMEMBERED:
                self._nearest.clear()
            self._nearest[namespace, asked] = self._look_near(namespace, asked)
        return self._nearest[namespace, asked]

    def _look_near(self, namespace: str, asked: str) -> tuple[str, ...]:
        names = {name.lower(): name for rule in self._rules if rule.covers(namespace) for name in rule.names}
        likely = sorted(names, key=lambda name: (name[:2] != asked[:2], abs(len(name) - len(asked))))[:_LOOKED_AT]
        alike = difflib.get_close_matches(asked, likely, _AT_MOST, _CLOSE_ENOUGH)
        return tuple(names[name] for name in alike)
