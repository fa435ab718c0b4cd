"""The reader: reads the past from the stored segments and the buffer, on every replica.

A read costs one list of the segments' metadata, and one request for each segment that contains records of the
autoscaler. Sealed segments are cached. Decompression runs in a thread, so that it does not block the event loop.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from cachetools import LRUCache

from adapter.history.coverage import Gap, absence, gaps
from adapter.history.records import DecisionRecord
from adapter.history.segments import SegmentInfo, records_in
from adapter.history.store import SegmentStore
from adapter.history.write_buffer import WriteBuffer
from adapter.ttl_cache import TTLCache
from autoscaler.kube.errors import NotFound
from autoscaler.ports import Clock

log = logging.getLogger(__name__)

MAX_RECORDS: Final = 5000
"""Records in one response; the newest are returned."""

_CACHE_BYTES: Final = 8 * 2**20
_LIST_TTL: Final = timedelta(seconds=2)
_SEGMENT_TTL: Final = timedelta(hours=1)
_CONCURRENT_REQUESTS: Final = 4
_BATCH: Final = 8
_MAX_DELAY: Final = timedelta(seconds=90)
"""The longest time after which a living leader writes again, with a reserve for one failed attempt."""


@dataclass(frozen=True, slots=True)
class RecordedPeriod:
    """The records of one autoscaler in a period, oldest first; the first one was in force when the period began."""

    since: datetime
    until: datetime
    records: tuple[DecisionRecord, ...]
    gaps: tuple[Gap, ...]
    begins_at: datetime | None
    """When the history begins; None if nothing is stored."""

    recorded_until: datetime | None
    is_truncated: bool = False


@dataclass(frozen=True, slots=True)
class RecordedMoment:
    """What is known about one autoscaler at one moment."""

    at: datetime
    record: DecisionRecord | None
    """The last record at or before the moment."""

    following: DecisionRecord | None
    """The first record after it."""

    gap: Gap | None
    """The gap that the moment is in."""

    begins_at: datetime | None
    recorded_until: datetime | None


class HistoryReader:
    """Reads the decision history of all replicas."""

    def __init__(self, store: SegmentStore, buffer: WriteBuffer, clock: Clock) -> None:
        self._store = store
        self._buffer = buffer
        self._clock = clock
        self._lists: TTLCache[str, tuple[SegmentInfo, ...]] = TTLCache(1, _loop_time)
        sizes = LRUCache[str, tuple[bytes, float]](_CACHE_BYTES, getsizeof=lambda value: len(value[0]))
        self._contents: TTLCache[str, bytes] = TTLCache(timer=_loop_time, entries=sizes)
        self._requests = asyncio.Semaphore(_CONCURRENT_REQUESTS)
        self._thread = asyncio.Semaphore(1)
        """Held while a segment is decompressed: users of namespaces must not occupy all threads and cores."""

    async def moment(self, key: str, at: datetime) -> RecordedMoment:
        """Return what was in force at a moment; raise KubeError if the store cannot be read."""
        segments = await self._segments_of(key)
        before, after = await self._search(key, at, segments)
        missing = None if before is None else absence(before, after, segments, self._end())
        known = (*self._gaps(segments), *(() if missing is None else (missing,)))
        found = next((gap for gap in known if gap.contains(at)), None)
        return RecordedMoment(at, before, after, found, *_range(segments))

    async def period(self, key: str, since: datetime, until: datetime) -> RecordedPeriod:
        """Return the records of a period; raise KubeError if the store cannot be read."""
        segments = await self._segments_of(key)
        wanted = [one for one in segments if one.until >= since and one.start <= until and one.may_contain(key)]
        found: list[DecisionRecord] = []
        is_truncated = False
        for batch in _batches(sorted(wanted, key=lambda one: one.until, reverse=True)):
            for records in await asyncio.gather(*(self._records(segment, key) for segment in batch)):
                found += [record for record in records if since < record.at <= until]
            if len(found) > MAX_RECORDS:
                is_truncated = True
                break
        newest = sorted(found, key=lambda record: record.at)[-MAX_RECORDS:]
        if not is_truncated:
            first, _ = await self._search(key, since, segments, following=False)
            newest = [first, *newest] if first is not None else newest
        known = (*self._gaps(segments), *await self._absences(key, newest, until, segments))
        inside = tuple(sorted(gap for gap in known if gap.end > since and gap.start < until))
        return RecordedPeriod(since, until, tuple(newest), inside, *_range(segments), is_truncated)

    async def _search(
        self, key: str, at: datetime, segments: tuple[SegmentInfo, ...], *, following: bool = True
    ) -> tuple[DecisionRecord | None, DecisionRecord | None]:
        """Return the last record at or before a moment, and the first one after it."""
        before: DecisionRecord | None = None
        after: DecisionRecord | None = None
        wanted = [segment for segment in segments if segment.may_contain(key)]
        for segment in sorted(wanted, key=lambda one: one.until, reverse=True):
            if segment.start <= at and (before is None or segment.until >= before.at):
                records = await self._records(segment, key)
                before = max((one for one in (*_some(before), *records) if one.at <= at), key=_time, default=None)
                after = min((one for one in (*records, *_some(after)) if one.at > at), key=_time, default=None)
        for segment in sorted(wanted, key=lambda one: one.start) if following else ():
            if segment.until > at and (after is None or segment.start < after.at):
                records = (*await self._records(segment, key), *_some(after))
                after = min((one for one in records if one.at > at), key=_time, default=None)
        return before, after

    async def _segments_of(self, key: str) -> tuple[SegmentInfo, ...]:
        """Return the segments of processes that controlled the shard of an autoscaler."""
        return tuple(segment for segment in await self._segments() if segment.covers(key))

    async def _segments(self) -> tuple[SegmentInfo, ...]:
        """Return all segments; those of this process as they are in memory."""
        stored = await self._lists.get_or_load("", self._store.list, lambda _: _LIST_TTL)
        now = self._clock()
        own = {info.name: info for info in (segment.info(now) for segment in self._buffer.segments())}
        return (*(one for one in stored if one.name not in own), *own.values())

    async def _records(self, segment: SegmentInfo, key: str) -> tuple[DecisionRecord, ...]:
        for own in self._buffer.segments():
            if own.name == segment.name:
                return own.records_of(key)
        lifetime = _SEGMENT_TTL if segment.is_sealed else timedelta(0)
        try:
            content = await self._contents.get_or_load(segment.name, lambda: self._fetch(segment), lambda _: lifetime)
        except NotFound:
            return ()  # deleted since it was listed
        try:
            async with self._thread:
                return await asyncio.to_thread(records_in, content, key)
        except ValueError as error:
            log.warning(
                "segment of the decision history left out", extra={"segment": segment.name, "error": str(error)}
            )
            return ()

    async def _fetch(self, segment: SegmentInfo) -> bytes:
        async with self._requests:
            return await self._store.fetch(segment.name)

    def _gaps(self, segments: tuple[SegmentInfo, ...]) -> tuple[Gap, ...]:
        """Return the gaps, with the one since the last write if no leader is writing."""
        now, found = self._clock(), gaps(segments)
        last = max(segments, key=lambda one: one.until, default=None)
        if last is not None and (last.ends_term or now > last.until + _MAX_DELAY):
            reason = "no leader has recorded decisions since then"
            found = (*found, Gap(last.until, self._end(), reason))
        return found

    def _end(self) -> datetime:
        """Return the end of a gap that has not ended yet."""
        return self._clock() + timedelta(seconds=1)

    async def _absences(
        self, key: str, records: list[DecisionRecord], until: datetime, segments: tuple[SegmentInfo, ...]
    ) -> list[Gap]:
        """Return the periods in which the leader had no record of the autoscaler."""
        found = [absence(record, following, segments, until) for record, following in pairwise(records)]
        if records and absence(records[-1], None, segments, self._end()) is not None:
            _, following = await self._search(key, until, segments)
            found.append(absence(records[-1], following, segments, self._end()))
        return [gap for gap in found if gap is not None]


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


def _range(segments: tuple[SegmentInfo, ...]) -> tuple[datetime | None, datetime | None]:
    begins_at = min((segment.start for segment in segments), default=None)
    return begins_at, max((segment.until for segment in segments), default=None)


def _time(record: DecisionRecord) -> datetime:
    return record.at


def _some(record: DecisionRecord | None) -> tuple[DecisionRecord, ...]:
    return () if record is None else (record,)


def _batches(segments: list[SegmentInfo]) -> Iterator[list[SegmentInfo]]:
    for start in range(0, len(segments), _BATCH):
        yield segments[start : start + _BATCH]
