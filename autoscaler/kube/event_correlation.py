"""Client-go's event correlation: aggregation, deduplication and spam filter, without network or clock.

Three filters in client-go's order. Ten or more events within ten minutes that differ only in their message are
aggregated into one. A repeated event increments the count of the existing one. A token bucket per object and event
type allows a burst of 25 events, then one every five minutes.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from cachetools import LRUCache

from autoscaler.types.decision import Event
from autoscaler.types.record import Record

_CACHE_SIZE: Final = 4096
_MAX_SIMILAR: Final = 10
_AGGREGATION_INTERVAL: Final = timedelta(minutes=10)
_BURST: Final = 25
_REFILL_INTERVAL: Final = timedelta(minutes=5)
_AGGREGATED_PREFIX: Final = "(combined from similar events): "

_Key: TypeAlias = tuple[str, ...]


class InvolvedObject(Record):
    """The object that an event refers to."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""


@dataclass(slots=True)
class RecordedEvent:
    """An Event object as it is, or will be, stored by the API server."""

    involved: InvolvedObject
    event: Event
    first: datetime
    last: datetime
    count: int = 1
    name: str = ""
    """The object's name; empty until it was created."""


@dataclass(slots=True)
class _Similar:
    messages: set[str] = field(default_factory=set)
    last: datetime | None = None


@dataclass(slots=True)
class _TokenBucket:
    tokens: float
    updated_at: datetime


class EventCorrelator:
    """The correlation state of recent events."""

    def __init__(self) -> None:
        self._similar: LRUCache[_Key, _Similar] = LRUCache(_CACHE_SIZE)
        self._recorded: LRUCache[_Key, RecordedEvent] = LRUCache(_CACHE_SIZE)
        self._buckets: LRUCache[_Key, _TokenBucket] = LRUCache(_CACHE_SIZE)

    def correlate(self, involved: InvolvedObject, event: Event, now: datetime) -> RecordedEvent | None:
        """Return the event to send, new or with an incremented count; None if the spam filter drops it."""
        source = (involved.kind, involved.namespace, involved.name, involved.uid, involved.api_version, event.type)
        event, message = self._aggregate((*source, event.reason), event, now)
        key = (*source, event.reason, message)
        recorded = self._recorded.setdefault(key, RecordedEvent(involved, event, now, now, count=0))
        recorded.count += 1
        recorded.last, recorded.event = now, event
        return recorded if self._take_token(source, now) else None

    def _aggregate(self, key: _Key, event: Event, now: datetime) -> tuple[Event, str]:
        """Return the event, aggregated if there were many similar ones, and the message that identifies repetitions."""
        similar = self._similar.setdefault(key, _Similar())
        if similar.last is not None and now - similar.last > _AGGREGATION_INTERVAL:
            similar.messages.clear()
        similar.messages.add(event.message)
        similar.last = now
        if len(similar.messages) < _MAX_SIMILAR:
            return event, event.message
        similar.messages.pop()  # bounds the set; as in client-go, an arbitrary message is removed
        return Event(event.type, event.reason, _AGGREGATED_PREFIX + event.message), ""

    def _take_token(self, source: _Key, now: datetime) -> bool:
        bucket = self._buckets.setdefault(source, _TokenBucket(_BURST, now))
        bucket.tokens = min(_BURST, bucket.tokens + (now - bucket.updated_at) / _REFILL_INTERVAL)
        bucket.updated_at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
