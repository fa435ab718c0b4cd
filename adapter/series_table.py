"""Series as columns: the result of a query with many series, of which reads need few.

A row becomes a ``RawSample`` when it is read. The label sets are shared with the previous result of the same query.
"""

from array import array
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, overload

from adapter.label_sets import LabelSets
from adapter.sample import RawSample


class SeriesTable(Sequence[RawSample]):
    """All series of one result."""

    __slots__ = ("_ages", "_at", "label_sets", "values")

    def __init__(self, label_sets: LabelSets, values: "array[float]", at: datetime, ages: Sequence[float] = ()) -> None:
        """Create a table; ``ages`` are the seconds between each sample and ``at``, or empty if all are current."""
        self.label_sets: Final = label_sets
        self.values: Final = values
        self._at = at
        self._ages = ages

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, position: int) -> RawSample: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[RawSample, ...]: ...
    def __getitem__(self, position: int | slice) -> RawSample | tuple[RawSample, ...]:
        if isinstance(position, slice):
            return tuple(map(self._row, range(len(self))[position]))
        return self._row(position)

    def __iter__(self) -> Iterator[RawSample]:
        return map(self._row, range(len(self)))

    def _row(self, position: int) -> RawSample:
        age = self._ages[position] if self._ages else 0.0
        at = self._at - timedelta(seconds=age) if age else self._at
        return RawSample(self.values[position], at, self.label_sets.labels[position])
