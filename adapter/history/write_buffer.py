"""The write buffer: the segments of this process that are not stored yet, in memory and bounded. Pure."""

from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

from adapter.history.records import DecisionRecord, encode
from adapter.history.segments import MAX_RAW_BYTES, SegmentInfo, decoded, encode_entry, pack_keys, segment_name
from autoscaler.sharding.held_shards import HeldShards

_MAX_SEALED: Final = 8
"""Full segments that wait to be stored; at 5,000 autoscalers that change 40 times a day, 40 minutes of records."""


class BufferedSegment:
    """A segment that is being written."""

    def __init__(self, term: str, sequence: int, holder: str, start: datetime, shards: HeldShards) -> None:
        self._identity = (term, sequence, holder)
        self._shards = shards
        self.name = segment_name(term, sequence)
        self._start = start
        self._records: list[tuple[str, bytes]] = []
        self._raw_bytes = 0
        self.until = start
        self.stored_records = -1
        """Number of records in the stored version; -1 if it was never stored."""

        self.is_sealed = False
        self.ends_term = False

    def __len__(self) -> int:
        return len(self._records)

    @property
    def is_stored(self) -> bool:
        return self.stored_records >= 0

    @property
    def is_full(self) -> bool:
        return self._raw_bytes >= MAX_RAW_BYTES

    def add(self, key: str, record: bytes) -> None:
        self._records.append((key, record))
        self._raw_bytes += len(key) + len(record)

    def seal(self, at: datetime, *, ends_term: bool = False) -> None:
        self.until, self.is_sealed, self.ends_term = max(at, self._start), True, ends_term

    def entries(self) -> list[bytes]:
        return [encode_entry(key, record) for key, record in self._records]

    def records_of(self, key: str) -> tuple[DecisionRecord, ...]:
        return decoded(record for other, record in self._records if other == key)

    def info(self, now: datetime) -> SegmentInfo:
        """Return the information about the segment as of now, without its compressed size."""
        return SegmentInfo(
            *self._identity,
            start=self._start,
            until=self.until if self.is_sealed else max(now, self._start),
            records=len(self),
            keys=pack_keys(key for key, _ in self._records),
            is_sealed=self.is_sealed,
            ends_term=self.ends_term,
            shards=self._shards,
        )


class WriteBuffer:
    """The open segment of this process' term as leader, and sealed ones that are not stored yet."""

    def __init__(self, new_term: Callable[[], str], on_term_end: Callable[[], None] = lambda: None) -> None:
        self.open: BufferedSegment | None = None
        self.sealed: deque[BufferedSegment] = deque()
        self.lost_records = 0
        """Number of records that were dropped because they could not be stored."""

        self._new_term = new_term
        self.on_term_end = on_term_end
        self._term = ""
        self._holder = ""
        self._shards = HeldShards()
        self._sequence = 0

    def begin_term(self, holder: str, at: datetime, shards: HeldShards = HeldShards()) -> None:  # noqa: B008
        self.end_term(at)
        self._term, self._holder, self._sequence, self._shards = self._new_term(), holder, 0, shards
        self._open_next(at)

    def add(self, key: str, record: DecisionRecord, now: datetime) -> None:
        """Add a record to the open segment; without a term, do nothing."""
        if self.open is None:
            return
        self.open.add(key, encode(record))
        if self.open.is_full:
            self._seal(now)
            self._open_next(now)

    def end_term(self, at: datetime) -> None:
        if self.open is not None and not self.open.is_stored and not len(self.open):
            self.open = None  # shards that are acquired one after the other begin terms without a decision
        elif self.open is not None:
            self._seal(at, ends_term=True)
            self.on_term_end()

    def segments(self) -> Iterator[BufferedSegment]:
        """Yield all segments, oldest first."""
        yield from self.sealed
        if self.open is not None:
            yield self.open

    def drop(self, segment: BufferedSegment) -> None:
        """Remove a sealed segment that cannot be stored."""
        self.sealed.remove(segment)
        self.lost_records += len(segment) - max(segment.stored_records, 0)

    def _open_next(self, at: datetime) -> None:
        self._sequence += 1
        self.open = BufferedSegment(self._term, self._sequence, self._holder, at, self._shards)

    def _seal(self, at: datetime, *, ends_term: bool = False) -> None:
        if self.open is None:
            return
        self.open.seal(at, ends_term=ends_term)
        self.sealed.append(self.open)
        self.open = None
        while len(self.sealed) > _MAX_SEALED:
            self.drop(self.sealed[0])
