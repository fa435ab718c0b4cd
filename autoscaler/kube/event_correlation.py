"""Which events are worth sending, and which are the same as before: client-go's rules, without a network or a clock.

Three filters, in its order. More than ten events that differ only in their text within ten minutes become one. The same
event again is the same object with a higher count. And one object may have 25 events of a type at once, then one every
five minutes.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from autoscaler.types.decision import Event
from autoscaler.types.record import Record

_MOST_KINDS: Final = 4096
_MOST_SIMILAR: Final = 10
_SIMILAR_WITHIN: Final = timedelta(minutes=10)
_BURST: Final = 25
_REFILL: Final = timedelta(minutes=5)
_COMBINED: Final = "(combined from similar events): "

K = TypeVar("K")
V = TypeVar("V")


class Involved(Record):
    """The object that events are about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""


@dataclass(slots=True)
class Occurrence:
    """One event as the API server knows it, or will."""

    involved: Involved
    event: Event
    first: datetime
    last: datetime
    count: int = 1
    name: str = ""
    """What the server knows it as; empty until it was accepted."""


@dataclass(slots=True)
class _Similar:
    texts: set[str] = field(default_factory=set)
    last: datetime | None = None


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: datetime


class _Recent(OrderedDict[K, V], Generic[K, V]):
    """A memory of bounded size that forgets what was not used for longest."""

    def use(self, key: K, fresh: V) -> V:
        """Give what is remembered, or remember `fresh`."""
        value = self.setdefault(key, fresh)
        self.move_to_end(key)
        if len(self) > _MOST_KINDS:
            self.popitem(last=False)
        return value


class Correlator:
    """Remembers what was said."""

    def __init__(self) -> None:
        self._similar: _Recent[tuple[str, ...], _Similar] = _Recent()
        self._known: _Recent[tuple[str, ...], Occurrence] = _Recent()
        self._buckets: _Recent[tuple[str, ...], _Bucket] = _Recent()

    def hear(self, involved: Involved, event: Event, now: datetime) -> Occurrence | None:
        """Make an occurrence to send, new or counted up; None: it has been said often enough."""
        about = (involved.kind, involved.namespace, involved.name, involved.uid, involved.api_version, event.type)
        event, text = self._combined((*about, event.reason), event, now)
        key = (*about, event.reason, text)
        known = self._known.use(key, Occurrence(involved, event, now, now, count=0))
        known.count += 1
        known.last, known.event = now, event
        return known if self._may_speak(about, now) else None

    def _combined(self, key: tuple[str, ...], event: Event, now: datetime) -> tuple[Event, str]:
        """Turn an event into one that stands for many, if there were many; and say by which text it is known."""
        similar = self._similar.use(key, _Similar())
        if similar.last is not None and now - similar.last > _SIMILAR_WITHIN:
            similar.texts.clear()
        similar.texts.add(event.message)
        similar.last = now
        if len(similar.texts) < _MOST_SIMILAR:
            return event, event.message
        similar.texts.pop()  # so that the set does not grow; which one goes does not matter
        return Event(event.type, event.reason, _COMBINED + event.message), ""

    def _may_speak(self, about: tuple[str, ...], now: datetime) -> bool:
        bucket = self._buckets.use(about, _Bucket(_BURST, now))
        bucket.tokens = min(_BURST, bucket.tokens + (now - bucket.at) / _REFILL)
        bucket.at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
