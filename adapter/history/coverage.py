"""Which times the history covers, and why there are gaps. Pure.

A leader writes the segments of its term one after the other without a gap. There is a gap while no process was the
leader, after a leader was killed (until its successor started), and where records could not be stored.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from adapter.history.records import DecisionRecord
from adapter.history.segments import SegmentInfo

_FIRST_DECISION: Final = timedelta(minutes=5)
"""The time in which a new leader has decided about every autoscaler, with a reserve."""


class Gap(NamedTuple):
    """A period without recorded decisions."""

    start: datetime
    end: datetime
    reason: str

    def contains(self, at: datetime) -> bool:
        return self.start < at < self.end


def gaps(segments: Iterable[SegmentInfo]) -> tuple[Gap, ...]:
    """Return the gaps between segments, in the order of time."""
    return tuple(_gaps(sorted(segments, key=lambda segment: (segment.start, segment.until))))


def absence(
    record: DecisionRecord, following: DecisionRecord | None, segments: Iterable[SegmentInfo], until: datetime
) -> Gap | None:
    """Return the gap after a record of an autoscaler that the next leader did not find.

    A leader records the first decision of each autoscaler in its term. Without such a record, the autoscaler was
    deleted while no leader could record it, unless a later record is of the same object. ``following`` is the next
    record, and ``until`` the end without one.
    """
    if record.deleted or (following is not None and (following.deleted or following.uid == record.uid)):
        return None
    terms: dict[str, SegmentInfo] = {}
    end = until if following is None else following.at
    for segment in sorted(segments, key=lambda one: one.start):
        first = terms.setdefault(segment.term, segment)
        if record.at < first.start and min(segment.until, end) > first.start + _FIRST_DECISION:
            return Gap(first.start, end, _absence_reason(first))
    return None


def _absence_reason(first: SegmentInfo) -> str:
    return (
        f"{first.holder}, the leader, has no record of the autoscaler since its start; it was deleted before, or its"
        " decisions exceed a limit"
    )


def _gaps(ordered: list[SegmentInfo]) -> Iterator[Gap]:
    latest: SegmentInfo | None = None
    for previous, following in pairwise(ordered):
        latest = previous if latest is None or previous.until >= latest.until else latest
        if following.start > latest.until:
            yield Gap(latest.until, following.start, _reason(latest, following))


def _reason(previous: SegmentInfo, following: SegmentInfo) -> str:
    if previous.term == following.term:
        return "the records of this period could not be stored"
    if previous.ends_term and previous.holder == following.holder:
        return f"there was no leader between two terms of {previous.holder}"
    if previous.ends_term:
        return f"there was no leader between the terms of {previous.holder} and {following.holder}"
    return f"{previous.holder} ended without a last write, and {following.holder} was not the leader yet"
