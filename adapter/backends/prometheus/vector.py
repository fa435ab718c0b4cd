"""Conversion of an instant vector into a table of series. No I/O.

The rows of a response are its values and, if the query asks for them, the timestamps of the samples. A refresh usually
returns the same rows in the same order as the one before. Each row is therefore recognized by a hash of the text of its
labels, and labels are decoded only if the hash is new.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Final, TypeAlias

import msgspec

from adapter.errors import Ambiguous, BackendRejected, BadQuery
from adapter.label_sets import Labels, LabelSets
from adapter.rules.promql.sample_age import KIND_LABEL, TIMESTAMP_KIND
from adapter.series_table import SeriesTable

Point: TypeAlias = tuple[float, str]
"""When the server evaluated the query, by its own clock, and the value."""

NAME: Final = "__name__"
MAX_TEXT_BYTES: Final = 256 * 1024
"""Of one series, or of all warnings, in the response."""

_MAX_SIZE: Final = 1_500_000
"""Of a result: the number of labels and twice the number of series. Enough for 100,000 series with 12 labels. A short
label needs up to 165 bytes, twenty times its length in the response: ``maxResponseBytes`` alone is no memory limit."""

_MAX_AGE_SECONDS: Final = 1e10
_TIMESTAMP: Final = -1
"""In place of the position of a series, for a row that is a timestamp."""

_MISSING: Final = -1
_NO_LABELS: Final = hash(frozenset[tuple[str, str]]())
_decode_labels = msgspec.json.Decoder(dict[str, str]).decode


class Row(msgspec.Struct, gc=False):
    """One series of an instant vector, with its labels as JSON text."""

    metric: msgspec.Raw
    value: Point | None = None
    """None for a native histogram."""


_metric_of, _value_of = attrgetter("metric"), attrgetter("value")


@dataclass(frozen=True, slots=True)
class Layout:
    """The rows of a response: enough to recognize them in the next one. 64 bits of a hash with a random seed each."""

    hashes: "array[int]"
    """Of the text of the labels."""

    keys: "array[int]"
    """Of the labels without the metric's name, which ``timestamp()`` drops."""

    positions: "array[int]"
    """The positions of their series; negative for timestamps."""

    value_rows: "array[int]"
    """The row of each series."""

    timestamp_rows: "array[int]"
    """The row with the timestamp of each series; negative if it has none."""


def _layout_of(label_sets: LabelSets | None) -> Layout | None:
    return label_sets.layout if label_sets is not None and isinstance(label_sets.layout, Layout) else None


class _LayoutBuilder:
    """Finds the series of rows; the rows of the previous response are known."""

    def __init__(self, previous: LabelSets | None) -> None:
        self._previous = previous
        self._layout = _layout_of(previous)
        self._known = {} if self._layout is None else {key: row for row, key in enumerate(self._layout.hashes)}
        self._shared: dict[str, str] | None = None
        self._labels: list[Labels] = []
        self._size = 0
        self._unlabelled = 0
        self._hashes, self._keys = array("q"), array("q")
        self._positions, self._value_rows = array("q"), array("q")

    def add_known(self, rows: int) -> None:
        """Add the first rows of the previous response."""
        for row_hash in () if self._layout is None else self._layout.hashes[:rows]:
            self.add(row_hash, msgspec.Raw())

    def add(self, row_hash: int, text: msgspec.Raw) -> None:
        """Add the row whose labels have this text."""
        row = self._known.get(row_hash)
        if row is None or self._layout is None or self._previous is None:
            labels, is_timestamp = self._decode(text)
            key = hash(frozenset(item for item in labels.items() if item[0] != NAME))
        else:
            position, key = self._layout.positions[row], self._layout.keys[row]
            is_timestamp = position == _TIMESTAMP
            labels = {} if is_timestamp else self._previous.labels[position]
        self._positions.append(_TIMESTAMP if is_timestamp else len(self._labels))
        if not is_timestamp:
            self._value_rows.append(len(self._hashes))
            self._add_series(labels)
        self._hashes.append(row_hash)
        self._keys.append(key)

    def _add_series(self, labels: Labels) -> None:
        self._labels.append(labels)
        self._size += 2 + len(labels)
        if self._size > _MAX_SIZE:
            raise BackendRejected("the result has too many series and labels: aggregate series in the query")
        self._unlabelled += not labels
        if self._unlabelled > 1:
            raise Ambiguous("two series have no labels: the response is invalid")

    def _decode(self, text: msgspec.Raw) -> tuple[Labels, bool]:
        """Return the labels and whether the row is a timestamp."""
        if len(memoryview(text)) > MAX_TEXT_BYTES:
            raise BackendRejected("the labels of a series are too long")
        labels = _decode_labels(text)
        if labels.pop(KIND_LABEL, None) == TIMESTAMP_KIND:
            return labels, True
        if self._shared is None:  # most values of labels repeat, and the decoder creates a string for each
            known = () if self._previous is None else self._previous.labels
            self._shared = {value: value for each in known for value in each.values()}
        shared = self._shared
        return {name: shared.setdefault(value, value) for name, value in labels.items()}, False

    def build(self, numbers: "array[float]") -> tuple[LabelSets, Layout]:
        """Return the label sets with their layout; of two timestamps for the same labels, the older one applies."""
        timestamps: dict[int, int] = {}
        for row, position in enumerate(self._positions):
            if position == _TIMESTAMP:
                key = self._keys[row]
                other = timestamps.get(key, row)
                timestamps[key] = row if numbers[row] < numbers[other] else other
        common = timestamps.get(_NO_LABELS, _MISSING)
        rows = array("q", [timestamps.get(self._keys[row], common) for row in self._value_rows])
        # Which of two timestamps is older can be different next time: such a layout is not recognized again.
        is_unique = len(timestamps) + len(self._labels) == len(self._hashes)
        layout = Layout(self._hashes if is_unique else array("q"), self._keys, self._positions, self._value_rows, rows)
        return LabelSets(self._labels, self._previous, layout), layout


class VectorParser:
    """Converts the rows of one response, which are added in parts."""

    def __init__(self, previous: LabelSets | None = None) -> None:
        """Create a parser; ``previous`` are the label sets of the last response to the same query."""
        self._previous = previous
        self._layout = _layout_of(previous)
        self._builder: _LayoutBuilder | None = None
        """None while all rows are those of the previous response, in the same order."""

        self._numbers, self._evaluation_times = array("d"), array("d")

    def add(self, rows: list[Row]) -> None:
        points = [*map(_value_of, rows)]
        if None in points:
            raise BadQuery("the result is a native histogram, not a number for each series")
        done = len(self._numbers)
        self._evaluation_times.extend(map(itemgetter(0), points))
        self._numbers.extend(map(float, map(itemgetter(1), points)))
        hashes = array("q", map(hash, map(bytes, map(_metric_of, rows))))
        is_known = self._layout is not None and hashes == self._layout.hashes[done : done + len(hashes)]
        if self._builder is not None or not is_known:
            builder = self._start_builder(done)
            for row_hash, row in zip(hashes, rows, strict=True):
                builder.add(row_hash, row.metric)

    def _start_builder(self, rows: int) -> _LayoutBuilder:
        """Return the builder; a new one starts with this number of rows of the previous response."""
        if self._builder is None:
            self._builder = _LayoutBuilder(self._previous)
            self._builder.add_known(rows)
        return self._builder

    def table(self, now: datetime) -> SeriesTable:
        """Return all series; ``now`` is when the query was sent, by this process' clock."""
        label_sets, layout, numbers = self._previous, self._layout, self._numbers
        if self._builder is not None or label_sets is None or layout is None or len(layout.hashes) != len(numbers):
            label_sets, layout = self._start_builder(len(numbers)).build(numbers)
        values = array("d", map(numbers.__getitem__, layout.value_rows))
        return SeriesTable(label_sets, values, now, self._ages(layout))

    def _ages(self, layout: Layout) -> Sequence[float]:
        """Return the ages of the samples in seconds; empty if the response has no timestamps."""
        if len(layout.value_rows) == len(self._numbers):
            return ()
        numbers, times = self._numbers, self._evaluation_times
        # Both times are the server's, so a difference between its clock and this process' clock has no effect.
        ages = [
            max(times[value] - numbers[timestamp], 0.0) if timestamp >= 0 else 0.0
            for value, timestamp in zip(layout.value_rows, layout.timestamp_rows, strict=True)
        ]
        if not all(map(_MAX_AGE_SECONDS.__ge__, ages)):  # false for NaN, too
            raise ValueError("a timestamp is out of range")
        return array("d", ages)
