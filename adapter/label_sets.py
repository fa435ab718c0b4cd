"""The label sets of the series of one query, with indexes, so that any selector is evaluated in memory.

Successive snapshots share one object while the query returns the same series, so that neither label sets nor indexes
are built again. The index of a label is built when a selector first uses the label, and dropped when no selector has
used it for ``KEPT_REFRESHES`` refreshes. When series appear or disappear, the next object is constructed with the
indexes of this one, so that reads do not wait for them. Callers can make up selectors: only labels that a series has
are indexed, and at most ``MAX_INDEXES`` of them besides the namespace label of the rule.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from operator import eq
from typing import Final, Optional, TypeAlias

from autoscaler.values.requirement import EXISTS, Requirement
from autoscaler.values.selector import Selector

Labels: TypeAlias = Mapping[str, str]

MAX_INDEXES: Final = 16
KEPT_REFRESHES: Final = 12
"""A minute at the shortest default interval: each autoscaler reads every 15 seconds."""

_LARGE_SHARE: Final = 0.25
"""Of the series of a query; for reads of so many, whether labels repeat is determined once for all series."""

_EQUALITY: Final = frozenset({"=", "==", "in"})


class LabelSets:
    """The labels of each series, by position. Immutable, except for the indexes that are built on demand."""

    __slots__ = ("__weakref__", "_indexes", "_is_distinct", "_names", "labels", "layout", "unused_refreshes")

    def __init__(self, labels: Iterable[Labels], previous: Optional["LabelSets"] = None, layout: object = None) -> None:
        """Create label sets with the indexes of the previous ones.

        ``layout`` is what a backend needs to recognize the same label sets in its next response.
        """
        self.labels: Final = tuple(labels)
        self.layout: Final = layout
        self._names: frozenset[str] | None = None
        self._is_distinct: bool | None = None
        self._indexes: dict[str, dict[str, list[int]]] = {}
        self.unused_refreshes: dict[str, int] = {} if previous is None else dict(previous.unused_refreshes)
        """By indexed label, the number of refreshes since a read used its index."""

        for key in self.unused_refreshes:
            self._build_index(key)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def indexed_labels(self) -> tuple[str, ...]:
        return tuple(self._indexes)

    def count_refresh(self) -> None:
        """Count a refresh of the query; drop the indexes that reads have not used for some refreshes."""
        counts = {key: count + 1 for key, count in self.unused_refreshes.items() if count < KEPT_REFRESHES}
        if len(counts) < len(self._indexes):
            self._indexes = {key: index for key, index in self._indexes.items() if key in counts}
        self.unused_refreshes = counts

    def select(self, selector: Selector, label: str = "", value: str = "") -> Sequence[int]:
        """Return the positions of the series that match and, if ``label`` is given, have this value for it."""
        labels = self.labels
        candidates: Sequence[int] = self._candidates(selector.requirements, label, value)
        if label:
            candidates = [position for position in candidates if labels[position].get(label) == value]
        if selector.is_empty:
            return candidates
        return [position for position in candidates if selector.matches(labels[position])]

    def repeated_labels(self, matched: Sequence[Labels]) -> Labels | None:
        """Return labels that two of the matching series have; None if the labels of each series differ.

        Series without labels are not compared: they are values to aggregate, such as those of a CloudWatch expression.
        """
        if len(matched) < _LARGE_SHARE * len(self.labels):
            return _repeated_labels(matched)
        if self._is_distinct is None:
            self._is_distinct = _repeated_labels(self.labels) is None
        return None if self._is_distinct else _repeated_labels(matched)

    def _candidates(self, requirements: Iterable[Requirement], label: str, value: str) -> Sequence[int]:
        """Return the smallest indexed list that contains the positions of all matching series."""
        smallest: Sequence[int] = range(len(self.labels))
        if label:
            self._build_index(label)
            self.unused_refreshes[label] = 0
            smallest = self._indexes[label].get(value, ())
        for requirement in requirements:
            if requirement.operator not in _EQUALITY and requirement.operator != EXISTS:
                continue
            if requirement.key not in self._label_names():
                return ()
            if requirement.operator in _EQUALITY and (index := self._index(requirement.key)) is not None:
                lists = [index[value] for value in dict.fromkeys(requirement.values) if value in index]
                positions = lists[0] if len(lists) == 1 else [*chain.from_iterable(lists)]
                if len(positions) < len(smallest):
                    smallest = positions
        return smallest

    def _label_names(self) -> frozenset[str]:
        if self._names is None:
            self._names = frozenset().union(*self.labels)
        return self._names

    def _index(self, key: str) -> dict[str, list[int]] | None:
        """Return the positions by value of a label; None if there are too many indexes to build another one."""
        if key not in self._indexes:
            if len(self._indexes) >= MAX_INDEXES:
                return None
            self._build_index(key)
        self.unused_refreshes[key] = 0
        return self._indexes[key]

    def _build_index(self, key: str) -> None:
        if key in self._indexes:
            return
        index = self._indexes[key] = {}
        for position, labels in enumerate(self.labels):
            if (value := labels.get(key)) is not None:
                index.setdefault(value, []).append(position)


def with_known_labels(labels: Sequence[Labels], previous: LabelSets | None) -> LabelSets:
    """Return the label sets of a new result: the previous object, or a new one with the same labels where equal."""
    if previous is None:
        return LabelSets(labels)
    if len(labels) == len(previous) and all(map(eq, labels, previous.labels)):
        return previous
    known = {_key(each): each for each in previous.labels}
    return LabelSets((known.get(_key(each), each) for each in labels), previous)


def _key(labels: Labels) -> Hashable:
    return frozenset(labels.items())


def _repeated_labels(label_sets: Sequence[Labels]) -> Labels | None:
    """Return the first labels that two series have; the order of the labels is irrelevant."""
    if len(label_sets) < 2:
        return None
    labelled = [labels for labels in label_sets if labels]
    orders = set(map(tuple, labelled))
    if len(orders) == len(set(map(frozenset, orders))):  # else equal labels may be in another order
        keys: list[Hashable] = [(*labels, *labels.values()) for labels in labelled]
    else:
        keys = [_key(labels) for labels in labelled]
    if len(set(keys)) == len(keys):
        return None
    first: dict[Hashable, int] = {}
    return next(labelled[position] for position, key in enumerate(keys) if first.setdefault(key, position) != position)
