"""All series of one query at one time, and an index over their labels: any selector is answered without a query.

The index of a label is made when a selector first names it, and made at once in the next snapshot of the same query:
who reads never waits for it again.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from adapter.sample import RawSample
from autoscaler.values.requirement import EXISTS, Requirement
from autoscaler.values.selector import Selector

_Rows: TypeAlias = list[RawSample]
_EXACT: Final = frozenset({"=", "==", "in"})


class Snapshot:
    """What one query found. Immutable, but for the indexes that it makes on the way."""

    __slots__ = ("__weakref__", "_indexes", "at", "rows", "took")

    def __init__(
        self, rows: Iterable[RawSample], at: datetime, took: timedelta = timedelta(), indexed: Collection[str] = ()
    ) -> None:
        self.rows: Final = tuple(rows)
        self.at: Final = at
        """When the answer was there."""

        self.took: Final = took
        """How long the backend took over it."""

        self._indexes: dict[str, dict[str, _Rows]] = {key: _index(self.rows, key) for key in indexed}

    @property
    def indexed(self) -> tuple[str, ...]:
        """The labels that selectors have named so far."""
        return tuple(self._indexes)

    def select(self, selector: Selector, label: str = "", value: str = "") -> Sequence[RawSample]:
        """Find the series that the selector matches and that have this value for a label, if one is given."""
        if selector.is_empty and not label:
            return self.rows
        candidates = self._fewest(selector.requirements, label, value)
        if label:
            return [row for row in candidates if row.labels.get(label) == value and selector.matches(row.labels)]
        return [row for row in candidates if selector.matches(row.labels)]

    def _fewest(self, requirements: Iterable[Requirement], label: str, value: str) -> Sequence[RawSample]:
        """Find the shortest list that surely holds all that match."""
        fewest: Sequence[RawSample] = self._with(label, value) if label else self.rows
        for requirement in requirements:
            if requirement.operator in _EXACT:
                found = self._one_of(requirement.key, requirement.values)
                if len(found) < len(fewest):
                    fewest = found
            elif requirement.operator == EXISTS and not self._of(requirement.key):
                return ()
        return fewest

    def _one_of(self, key: str, values: tuple[str, ...]) -> _Rows:
        if len(values) == 1:
            return self._with(key, values[0])
        return [row for value in dict.fromkeys(values) for row in self._with(key, value)]

    def _with(self, key: str, value: str) -> _Rows:
        return self._of(key).get(value, [])

    def _of(self, key: str) -> dict[str, _Rows]:
        index = self._indexes.get(key)
        if index is None:
            index = self._indexes[key] = _index(self.rows, key)
        return index


def _index(rows: Iterable[RawSample], key: str) -> dict[str, _Rows]:
    index: dict[str, _Rows] = {}
    for row in rows:
        value = row.labels.get(key)
        if value is not None:
            index.setdefault(value, []).append(row)
    return index
