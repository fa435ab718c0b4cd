"""Indexes the pod selectors of all targets, to find autoscalers whose targets select the same pods.

Two autoscalers that select the same pods would both count them. Selectors are indexed by the label values that they
require, because matching every selector with every pod would be too slow for many autoscalers. If no other selector
can match the same pods, the pods need not be listed at all.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from cachetools import LRUCache, cached

from autoscaler.algorithm.selection import selecting_autoscalers
from autoscaler.types.observation import Pod
from autoscaler.values.selector import Selector, parse

_Label: TypeAlias = tuple[str, str]
"""Key and value of a label that a selector requires."""

_CACHE_BYTES: Final = 32 * 2**20
"""The parsed selectors of about 25,000 targets with two labels each."""

_REQUIREMENT_BYTES: Final = 384


class _NamespaceIndex:
    def __init__(self) -> None:
        self.selectors: dict[str, Selector] = {}
        self.labels: dict[str, tuple[_Label, ...]] = {}
        """The labels that a selector requires, by autoscaler."""
        self.by_label: defaultdict[_Label, set[str]] = defaultdict(set)
        self.requiring_key: Counter[str] = Counter()
        """Number of selectors that require a specific value of a label, by label key."""
        self.unindexed: set[str] = set()
        """Autoscalers whose selectors require no specific label value: they may match any pod."""


class TargetSelectors:
    """The pod selectors of all targets, by namespace and autoscaler key."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _NamespaceIndex] = {}

    def update(self, key: str, selector: Selector) -> None:
        index = self._namespaces.get(_namespace(key))
        if index is not None and index.selectors.get(key) is selector:
            return
        self.remove(key)
        index = self._namespaces.setdefault(_namespace(key), _NamespaceIndex())
        index.selectors[key] = selector
        labels = index.labels[key] = _required_labels(selector)
        for label in labels:
            index.by_label[label].add(key)
        index.requiring_key.update({name for name, _ in labels})  # a selector counts once, also if it never matches
        if not labels:
            index.unindexed.add(key)

    def remove(self, key: str) -> Selector | None:
        """Remove an autoscaler; return its selector, or None if it has none."""
        index = self._namespaces.get(_namespace(key))
        selector = index.selectors.pop(key, None) if index is not None else None
        if index is None or selector is None:
            return None
        labels = index.labels.pop(key)
        for label in labels:
            index.by_label[label].discard(key)
            if not index.by_label[label]:
                del index.by_label[label]
        for name in {name for name, _ in labels}:
            index.requiring_key[name] -= 1
            if not index.requiring_key[name]:
                del index.requiring_key[name]
        index.unindexed.discard(key)
        if not index.selectors:
            del self._namespaces[_namespace(key)]
        return selector

    def may_overlap(self, key: str) -> bool:
        """Return whether another selector may match the same pods.

        Selectors that require different values of a label match no common pod. So for each label that the selector
        requires, count the selectors, including itself, that require the same value or no value of the label.
        """
        index = self._namespaces.get(_namespace(key))
        if index is None or key not in index.selectors:
            return False
        total = len(index.selectors)
        if total == 1:
            return False
        labels = index.labels[key]
        return all(total - index.requiring_key[label[0]] + len(index.by_label[label]) > 1 for label in labels)

    def selecting_autoscalers(
        self, namespace: str, pods: Sequence[Pod], is_ignored: Callable[[str], bool] = lambda _: False
    ) -> tuple[str, ...]:
        """Return autoscalers whose targets select one of the pods; at most two, enough to report an ambiguity."""
        index = self._namespaces.get(namespace)
        if index is None or not pods:
            return ()
        candidates = set(index.unindexed)
        for label in {label for pod in pods for label in pod.labels.items()}:
            candidates |= index.by_label.get(label, set())
        return selecting_autoscalers(pods, {key: index.selectors[key] for key in candidates if not is_ignored(key)})


def _size(selector: Selector) -> int:
    """Estimate the memory of a parsed selector and its text."""
    return 2 * selector.weight + _REQUIREMENT_BYTES * len(selector.requirements)


@cached(LRUCache[tuple[str], Selector](_CACHE_BYTES, getsizeof=_size))
def parse_cached(text: str) -> Selector:
    """Parse the selector of a target; cached, because every reconcile parses the same text."""
    return parse(text)


def _required_labels(selector: Selector) -> tuple[_Label, ...]:
    exact = ((requirement.key, requirement.exact_value()) for requirement in selector.requirements)
    return tuple({(key, value): None for key, value in exact if value is not None})


def _namespace(key: str) -> str:
    return key.partition("/")[0]
