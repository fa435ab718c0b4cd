"""Whose pods are whose: the selector of every autoscaler's target, and who else's matches the same pods.

Two autoscalers that select the same pods would both count them. Asking every selector about every pod would cost a
fleet dearly, so selectors are found by a label that they insist on; and where no other selector can possibly match the
same pods, the pods need not be known at all.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from autoscaler.algorithm.selection import who_selects
from autoscaler.types.observation import Pod
from autoscaler.values.selector import Selector, parse

Pair: TypeAlias = tuple[str, str]
"""A label that a selector insists on: its key and its value."""


class _Namespace:
    def __init__(self) -> None:
        self.selectors: dict[str, Selector] = {}
        self.by_pair: dict[Pair, set[str]] = {}
        self.insisting: dict[str, int] = {}
        """How many insist on some value of a label, by its key."""
        self.without: set[str] = set()
        """Those that insist on no label's value: they may match anything."""


class Selectors:
    """The selectors of all targets, by namespace and autoscaler."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}

    def note(self, key: str, selector: Selector) -> None:
        """Remember what an autoscaler's target selects now."""
        here = self._namespaces.setdefault(_namespace(key), _Namespace())
        known = here.selectors.get(key)
        if known is selector:
            return
        self.forget(key)
        here = self._namespaces.setdefault(_namespace(key), _Namespace())
        here.selectors[key] = selector
        pairs = _pairs(selector)
        for pair in pairs:
            here.by_pair.setdefault(pair, set()).add(key)
            here.insisting[pair[0]] = here.insisting.get(pair[0], 0) + 1
        if not pairs:
            here.without.add(key)

    def forget(self, key: str) -> Selector | None:
        """Forget an autoscaler that is gone; give what it selected."""
        here = self._namespaces.get(_namespace(key))
        selector = here.selectors.pop(key, None) if here is not None else None
        if here is None or selector is None:
            return None
        for pair in _pairs(selector):
            here.by_pair[pair].discard(key)
            if not here.by_pair[pair]:
                del here.by_pair[pair]
            here.insisting[pair[0]] -= 1
        here.without.discard(key)
        if not here.selectors:
            del self._namespaces[_namespace(key)]
        return selector

    def may_overlap(self, key: str) -> bool:
        """Tell whether another selector might match the same pods; one with another value of a label cannot."""
        here = self._namespaces.get(_namespace(key))
        if here is None or key not in here.selectors:
            return False
        others = len(here.selectors) - 1
        if not others:
            return False
        total = len(here.selectors)
        pairs = _pairs(here.selectors[key])
        return all(total - here.insisting[pair[0]] + len(here.by_pair[pair]) - 1 > 0 for pair in pairs)

    def who_selects(self, namespace: str, pods: Sequence[Pod]) -> tuple[str, ...]:
        """Name the autoscalers whose target selects one of the pods; two are enough."""
        here = self._namespaces.get(namespace)
        if here is None or not pods:
            return ()
        found = set(here.without)
        for pair in {pair for pod in pods for pair in pod.labels.items()}:
            found |= here.by_pair.get(pair, set())
        return who_selects(pods, {key: here.selectors[key] for key in found})


@lru_cache(maxsize=65536)
def parsed(text: str) -> Selector:
    """Read the selector of a target; the same text comes with every pass."""
    return parse(text)


@lru_cache(maxsize=65536)
def _pairs(selector: Selector) -> tuple[Pair, ...]:
    exact = ((requirement.key, requirement.exact()) for requirement in selector.requirements)
    return tuple({(key, value): None for key, value in exact if value is not None})


def _namespace(key: str) -> str:
    return key.partition("/")[0]
