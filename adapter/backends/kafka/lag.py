"""Computation of consumer lag from offsets. Pure code: the time is an argument."""

import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cachetools import LRUCache

from adapter.backends.kafka.parse import Partition
from adapter.backends.kafka.settings import KafkaParameters, parse_ranges
from adapter.sample import RawSample

_MAX_TRACKED: Final = 100_000
_LABELS: Final = {"group": 1, "topic": 2, "partition": 3}  # number of labels of a series, by the parameter ``series``


class PartitionOffsets(NamedTuple):
    """The offsets of one partition; None: unknown, or not committed."""

    committed: int | None
    end: int | None
    start: int | None = None

    @property
    def has_valid_commit(self) -> bool:
        """Return whether consumers continue at the committed offset. One after the end of the log is invalid."""
        return self.committed is not None and (self.end is None or self.committed <= self.end)


class CommitProgress:
    """Tracks since when the committed offset of a partition has not changed although there is lag."""

    def __init__(self) -> None:
        self._last_commits: LRUCache[tuple[str, Partition], tuple[int, datetime]] = LRUCache(_MAX_TRACKED)

    def time_since_commit(
        self, group: str, partition: Partition, offsets: PartitionOffsets, now: datetime
    ) -> timedelta:
        """Record the committed offset and return how long it has been unchanged with lag."""
        key, committed = (group, partition), -1 if offsets.committed is None else offsets.committed
        previous, since = self._last_commits.get(key, (None, now))
        if previous != committed or committed == offsets.end:
            since = now
        self._last_commits[key] = (committed, since)
        return now - since


def select_partitions(wanted: KafkaParameters, partitions: Mapping[Partition, object]) -> list[Partition]:
    ranges = parse_ranges(wanted.partitions) if wanted.partitions else None
    return sorted(each for each in partitions if ranges is None or any(each.number in range_ for range_ in ranges))


def lag(wanted: KafkaParameters, offsets: PartitionOffsets) -> float:
    """Return the lag of a group in one partition; NaN if it is unknown."""
    if offsets.end is None:
        return math.nan
    if offsets.has_valid_commit and offsets.committed is not None:
        return offsets.end - offsets.committed
    if wanted.zero_without_offset:
        return 0
    if wanted.offset_reset == "earliest":
        return offsets.end - offsets.start if offsets.start is not None else math.nan
    return min(1, offsets.end)


def samples(wanted: KafkaParameters, lags: Mapping[Partition, float], now: datetime) -> Iterator[RawSample]:
    """Yield a sample for each series of the rule, from the lag of each partition."""
    by_labels: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for partition, partition_lag in lags.items():
        labels = (("group", wanted.group), ("topic", partition.topic), ("partition", str(partition.number)))
        by_labels.setdefault(labels[: _LABELS[wanted.series]], []).append(partition_lag)
    for series_labels, partition_lags in by_labels.items():
        yield RawSample(_total(wanted, partition_lags), now, dict(series_labels))


def _total(wanted: KafkaParameters, partition_lags: list[float]) -> float:
    """Return the sum, limited to the lag that the maximum number of useful consumers would have."""
    total = math.fsum(partition_lags)
    if math.isnan(total) or not wanted.lag_per_consumer:
        return total
    with_lag = sum(each > 0 for each in partition_lags)
    max_consumers = with_lag if wanted.limit_to_partitions_with_lag else len(partition_lags)
    return min(total, max_consumers * wanted.lag_per_consumer)
