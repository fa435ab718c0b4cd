"""From offsets to lag: what counts for how much, and what consumers could share; pure, and time is an argument."""

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from adapter.backends.kafka.parse import Place
from adapter.backends.kafka.settings import KafkaParameters, ranges
from adapter.sample import RawSample

_REMEMBERED: Final = 100_000


class Offsets(NamedTuple):
    """What is known of one partition; None: not known, or not there."""

    committed: int | None
    end: int | None
    beginning: int | None = None

    @property
    def is_without_commit(self) -> bool:
        """Say whether consumers must decide where to begin: nothing is committed, or what is lies behind the end."""
        return self.committed is None or (self.end is not None and self.committed > self.end)


class Progress:
    """Remembers since when the committed offset of a partition has not moved, though there is something to do."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, Place], tuple[int, datetime]] = OrderedDict()

    def standing(self, group: str, place: Place, offsets: Offsets, now: datetime) -> timedelta:
        """Say for how long it has not moved, and remember where it is."""
        key, committed = (group, place), offsets.committed if offsets.committed is not None else -1
        before, since = self._seen.pop(key, (None, now))
        if before != committed or committed == offsets.end:
            since = now
        self._seen[key] = (committed, since)
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return now - since


def wanted(asked: KafkaParameters, places: Mapping[Place, object]) -> list[Place]:
    """Give the partitions that a rule is about."""
    some = ranges(asked.partitions) if asked.partitions else None
    return sorted(place for place in places if some is None or any(place.partition in part for part in some))


def lag(asked: KafkaParameters, known: Offsets) -> float:
    """Say how far behind a group is in one partition; NaN: nobody knows."""
    if known.end is None:
        return math.nan
    if not known.is_without_commit and known.committed is not None:
        return known.end - known.committed
    if asked.zero_without_offset:
        return 0
    if asked.offset_reset == "earliest":
        return known.end - known.beginning if known.beginning is not None else math.nan
    return min(1, known.end)


def samples(asked: KafkaParameters, lags: Mapping[Place, float], now: datetime) -> Iterator[RawSample]:
    """Make series of the lag in each partition."""
    together: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for place, behind in lags.items():
        labels = {"group": asked.group, "topic": place.topic, "partition": str(place.partition)}
        kept = {"group": 1, "topic": 2, "partition": 3}[asked.series]
        together.setdefault(tuple(labels.items())[:kept], []).append(behind)
    for said, parts in together.items():
        yield RawSample(_shared(asked, parts), now, dict(said))


def _shared(asked: KafkaParameters, parts: list[float]) -> float:
    """Add up, and take no more than as many consumers as have something to do would have."""
    total = math.fsum(parts)
    if math.isnan(total) or not asked.lag_per_consumer:
        return total
    consumers = sum(part > 0 for part in parts) if asked.limit_to_partitions_with_lag else len(parts)
    return min(total, consumers * asked.lag_per_consumer)
