"""All series of one query at one time, with indexes on their labels, so that any selector is evaluated in memory.

The index of a label is built when a selector first uses the label. The next snapshot of the same query is constructed
with the same indexes, so that reads do not wait for them.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from adapter.sample import RawSample
from autoscaler.values.requirement import EXISTS, Requirement
from autoscaler.values.selector import Selector

_Series: TypeAlias = list[RawSample]
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

        self._indexes: dict[str, dict[str, _Series]] = {key: _index(self.series, key) for key in indexed_labels}

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
            return [
                series for series in candidates if series.labels.get(label) == value and selector.matches(series.labels)
            ]
        return [series for series in candidates if selector.matches(series.labels)]

    def _candidates(self, requirements: Iterable[Requirement], label: str, value: str) -> Sequence[RawSample]:
        """Return the smallest indexed list that contains all matching series."""
        smallest: Sequence[RawSample] = self._with_value(label, value) if label else self.series
        for requirement in requirements:
            if requirement.operator in _EQUALITY:
                series = self._with_any_value(requirement.key, requirement.values)
                if len(series) < len(smallest):
                    smallest = series
            elif requirement.operator == EXISTS and not self._index(requirement.key):
                return ()
        return smallest

    def _with_any_value(self, key: str, values: tuple[str, ...]) -> _Series:
        if len(values) == 1:
            return self._with_value(key, values[0])
        return [series for value in dict.fromkeys(values) for series in self._with_value(key, value)]

    def _with_value(self, key: str, value: str) -> _Series:
        return self._index(key).get(value, [])

    def _index(self, key: str) -> dict[str, _Series]:
        index = self._indexes.get(key)
        if index is None:
            index = self._indexes[key] = _index(self.series, key)
        return index


def _index(all_series: Iterable[RawSample], key: str) -> dict[str, _Series]:
    index: dict[str, _Series] = {}
    for series in all_series:
        value = series.labels.get(key)
        if value is not None:
            index.setdefault(value, []).append(series)
    return index
