"""All series of one query at one time, with indexes on their labels, so that any selector is evaluated in memory.

The index of a label is built when a selector first uses the label. The next snapshot of the same query is constructed
with the same indexes, so that reads do not wait for them.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from adapter.sample import RawSample
from autoscaler.values.requirement import EXISTS, Requirement
from autoscaler.values.selector import Selector

_EQUALITY: Final = frozenset({"=", "==", "in"})


class Snapshot:
    """The result of one query. Immutable, except for the indexes that are built on demand."""

    __slots__ = ("__weakref__", "_indexes", "duration", "fetched_at", "series")

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

        self._indexes: dict[str, dict[str, list[RawSample]]] = {}
        for key in indexed_labels:
            self._index(key)

    @property
    def indexed_labels(self) -> tuple[str, ...]:
        """The labels that selectors have used so far."""
        return tuple(self._indexes)

    def select(self, selector: Selector, label: str = "", value: str = "") -> Sequence[RawSample]:
        """Return the series that match the selector and, if ``label`` is given, have this value for it."""
        if selector.is_empty and not label:
            return self.series
        candidates = self._candidates(selector.requirements, label, value)
        if label:
            candidates = [series for series in candidates if series.labels.get(label) == value]
        return [series for series in candidates if selector.matches(series.labels)]

    def _candidates(self, requirements: Iterable[Requirement], label: str, value: str) -> Sequence[RawSample]:
        """Return the smallest indexed list that contains all matching series."""
        smallest: Sequence[RawSample] = self._index(label).get(value, ()) if label else self.series
        for requirement in requirements:
            if requirement.operator in _EQUALITY:
                index = self._index(requirement.key)
                lists = [index[value] for value in dict.fromkeys(requirement.values) if value in index]
                series = lists[0] if len(lists) == 1 else [*chain.from_iterable(lists)]
                if len(series) < len(smallest):
                    smallest = series
            elif requirement.operator == EXISTS and not self._index(requirement.key):
                return ()
        return smallest

    def _index(self, key: str) -> dict[str, list[RawSample]]:
        """Return the series by their value for a label."""
        index = self._indexes.get(key)
        if index is None:
            index = self._indexes[key] = {}
            for series in self.series:
                if (value := series.labels.get(key)) is not None:
                    index.setdefault(value, []).append(series)
        return index
