"""All series of one query at one time, with indexes on their labels, so that any selector is evaluated in memory.

The index of a label is built when a selector first uses the label. The next snapshot of the same query is constructed
with the indexes that reads of this one used, so that reads do not wait for them. Callers can make up selectors: only
labels that a series has are indexed, and at most ``MAX_INDEXES`` of them besides the namespace label of the rule.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from adapter.sample import RawSample
from autoscaler.values.requirement import EXISTS, Requirement
from autoscaler.values.selector import Selector

MAX_INDEXES: Final = 16
_LARGE_SHARE: Final = 0.25
"""Of the series of a snapshot; for reads of so many, whether labels repeat is determined once for all series."""

_EQUALITY: Final = frozenset({"=", "==", "in"})


class Snapshot:
    """The result of one query. Immutable, except for the indexes that are built on demand."""

    __slots__ = ("__weakref__", "_indexes", "_is_distinct", "_names", "_used", "duration", "fetched_at", "series")

    def __init__(
        self,
        series: Iterable[RawSample],
        fetched_at: datetime,
        duration: timedelta = timedelta(),
        indexed_labels: Collection[str] = (),
    ) -> None:
        self.series: Final = tuple(series)
        self.fetched_at: Final = fetched_at
        """When the response arrived."""

        self.duration: Final = duration
        """How long the backend took to respond."""

        self._names: frozenset[str] | None = None
        self._is_distinct: bool | None = None
        self._indexes: dict[str, dict[str, list[RawSample]]] = {}
        self._used: dict[str, None] = {}
        for key in indexed_labels:
            if len(self._indexes) < MAX_INDEXES:
                self._build_index(key)

    @property
    def indexed_labels(self) -> tuple[str, ...]:
        """The labels whose indexes reads of this snapshot used."""
        return tuple(self._used)

    @property
    def index_count(self) -> int:
        return len(self._indexes)

    def select(self, selector: Selector, label: str = "", value: str = "") -> Sequence[RawSample]:
        """Return the series that match the selector and, if ``label`` is given, have this value for it."""
        if selector.is_empty and not label:
            return self.series
        candidates = self._candidates(selector.requirements, label, value)
        if label:
            candidates = [series for series in candidates if series.labels.get(label) == value]
        return [series for series in candidates if selector.matches(series.labels)]

    def repeated_labels(self, matched: Sequence[RawSample]) -> Mapping[str, str] | None:
        """Return labels that two of the matching series have; None if the labels of each series differ.

        Series without labels are not compared: they are values to aggregate, such as those of a CloudWatch expression.
        """
        if len(matched) < _LARGE_SHARE * len(self.series):
            return _repeated_labels(matched)
        if self._is_distinct is None:
            self._is_distinct = _repeated_labels(self.series) is None
        return None if self._is_distinct else _repeated_labels(matched)

    def _candidates(self, requirements: Iterable[Requirement], label: str, value: str) -> Sequence[RawSample]:
        """Return the smallest indexed list that contains all matching series."""
        smallest: Sequence[RawSample] = self.series
        if label:
            self._build_index(label)
            self._used[label] = None
            smallest = self._indexes[label].get(value, ())
        for requirement in requirements:
            if requirement.operator not in _EQUALITY and requirement.operator != EXISTS:
                continue
            if requirement.key not in self._label_names():
                return ()
            if requirement.operator in _EQUALITY and (index := self._index(requirement.key)) is not None:
                lists = [index[value] for value in dict.fromkeys(requirement.values) if value in index]
                series = lists[0] if len(lists) == 1 else [*chain.from_iterable(lists)]
                if len(series) < len(smallest):
                    smallest = series
        return smallest

    def _label_names(self) -> frozenset[str]:
        if self._names is None:
            self._names = frozenset().union(*(series.labels for series in self.series))
        return self._names

    def _index(self, key: str) -> dict[str, list[RawSample]] | None:
        """Return the series by their value for a label; None if there are too many indexes to build another one."""
        if key not in self._indexes:
            if len(self._indexes) >= MAX_INDEXES:
                return None
            self._build_index(key)
        self._used[key] = None
        return self._indexes[key]

    def _build_index(self, key: str) -> None:
        if key in self._indexes:
            return
        index = self._indexes[key] = {}
        for series in self.series:
            if (value := series.labels.get(key)) is not None:
                index.setdefault(value, []).append(series)


def _repeated_labels(series: Sequence[RawSample]) -> Mapping[str, str] | None:
    """Return the first labels that two series have; the order of the labels is irrelevant."""
    if len(series) < 2:
        return None
    labelled = [each.labels for each in series if each.labels]
    orders = set(map(tuple, labelled))
    if len(orders) == len(set(map(frozenset, orders))):  # else equal labels may be in another order
        keys: list[Hashable] = [(*labels, *labels.values()) for labels in labelled]
    else:
        keys = [frozenset(labels.items()) for labels in labelled]
    if len(set(keys)) == len(keys):
        return None
    first: dict[Hashable, int] = {}
    return next(labelled[position] for position, key in enumerate(keys) if first.setdefault(key, position) != position)
