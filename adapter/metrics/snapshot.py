"""All series of one query at one time."""

from array import array
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, Optional, TypeAlias

from adapter.label_sets import Labels, LabelSets, with_known_labels
from adapter.sample import RawSample
from adapter.series_table import SeriesTable
from autoscaler.values.selector import Selector

ChangedLabels: TypeAlias = tuple[Labels, ...] | None
"""The labels of the series that changed; None: unknown, so possibly all."""


class Snapshot:
    """The result of one query."""

    __slots__ = ("__weakref__", "duration", "fetched_at", "label_sets", "series", "values")

    def __init__(
        self,
        series: Iterable[RawSample],
        fetched_at: datetime,
        duration: timedelta = timedelta(),
        previous: Optional["Snapshot"] = None,
    ) -> None:
        """Create a snapshot; it shares labels and indexes with the previous one of the same query."""
        self.series: Final[Sequence[RawSample]] = series if isinstance(series, SeriesTable) else tuple(series)
        self.fetched_at: Final = fetched_at
        """When the response arrived."""

        self.duration: Final = duration
        """How long the backend took to respond."""

        self.label_sets: Final = _label_sets(self.series, previous)
        self.values: Final = _values(self.series)
        self.label_sets.count_refresh()

    def select(self, selector: Selector, label: str = "", value: str = "") -> Sequence[RawSample]:
        """Return the series that match the selector and, if ``label`` is given, have this value for it."""
        if selector.is_empty and not label:
            return self.series
        return [*map(self.series.__getitem__, self.label_sets.select(selector, label, value))]

    def repeated_labels(self, matched: Sequence[RawSample]) -> Labels | None:
        """Return labels that two of the matching series have; None if the labels of each series differ."""
        return self.label_sets.repeated_labels([series.labels for series in matched])

    def changes_since(self, before: "Snapshot") -> ChangedLabels:
        """Return the labels of the series that have another value than before, appeared or disappeared."""
        if self.label_sets is before.label_sets:
            if self.values == before.values:
                return ()
            pairs = zip(self.label_sets.labels, before.values, self.values, strict=True)
            return tuple(labels for labels, old, new in pairs if _differs(old, new))
        old_rows, new_rows = _by_labels(before), _by_labels(self)
        if len(old_rows) != len(before.values) or len(new_rows) != len(self.values):
            return None  # two series have the same labels
        gone = [labels for key, (labels, _) in old_rows.items() if key not in new_rows]
        changed = [
            labels for key, (labels, new) in new_rows.items() if key not in old_rows or _differs(old_rows[key][1], new)
        ]
        return (*gone, *changed)


def _label_sets(series: Sequence[RawSample], previous: Snapshot | None) -> LabelSets:
    if isinstance(series, SeriesTable):
        return series.label_sets
    return with_known_labels([each.labels for each in series], None if previous is None else previous.label_sets)


def _values(series: Sequence[RawSample]) -> "array[float]":
    return series.values if isinstance(series, SeriesTable) else array("d", [each.value for each in series])


def _by_labels(snapshot: Snapshot) -> dict[int, tuple[Labels, float]]:
    """Return labels and value of each series by the identity of the labels, which successive snapshots share."""
    rows = zip(snapshot.label_sets.labels, snapshot.values, strict=True)
    return {id(labels): (labels, value) for labels, value in rows}


def _differs(old: float, new: float) -> bool:
    return old != new and (old == old or new == new)  # noqa: PLR0124 - NaN twice is no change
