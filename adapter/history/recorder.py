"""The recorder: receives every decision and adds changes to the buffer, within limits per autoscaler and namespace.

A change that exceeds a limit is counted, and the next record of the autoscaler contains the number. The change itself
is recorded at a later reconcile if it still applies.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Final

from adapter.history.records import DecisionRecord, fingerprint, record_of, texts
from adapter.history.write_buffer import WriteBuffer
from autoscaler.ports import Clock
from autoscaler.sharding.held_shards import HeldShards
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision

log = logging.getLogger(__name__)

REPEAT_INTERVAL: Final = timedelta(hours=12)
"""An unchanged decision is recorded again after this time, so that the deletion of old segments does not leave an
autoscaler without a record, and a reader does not have to search far."""

BURST: Final = 120
"""Changes of one autoscaler that are recorded in a row: half an hour in which every reconcile changes something."""

RECOVERY: Final = timedelta(minutes=1)
"""Above the burst, one change of an autoscaler is recorded per minute."""

_RECORD_COST: Final = 64
"""Compressed bytes of a typical record, with a reserve; new text is counted in addition."""


@dataclass(slots=True)
class _LastRecord:
    fingerprint: int | None
    """None: no decision of the autoscaler was recorded yet, because of a limit."""

    at: datetime
    texts: frozenset[int]
    tokens: float = BURST - 1
    refilled_at: datetime | None = None
    omitted: int = 0

    def take_token(self, now: datetime) -> bool:
        elapsed = max(now - (self.refilled_at or self.at), timedelta(0))
        self.tokens, self.refilled_at = min(self.tokens + elapsed / RECOVERY, BURST), now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@dataclass(slots=True)
class NamespaceShares:
    """The bytes that each namespace has used today. A namespace gets more only if more is free than it has used."""

    bytes_per_day: int
    _day: date | None = None
    _total: int = 0
    _used: dict[str, int] = field(default_factory=dict)

    def take(self, namespace: str, size: int, now: datetime) -> bool:
        if now.date() != self._day:
            self._day, self._total, self._used = now.date(), 0, {}
        used = self._used.get(namespace, 0)
        if used + size > self.bytes_per_day - self._total:
            return False
        self._used[namespace] = used + size
        self._total += size
        return True


class DecisionRecorder:
    """Adds the decisions of this process to the buffer; a `autoscaler.ports.DecisionListener`."""

    def __init__(self, buffer: WriteBuffer, shares: NamespaceShares, clock: Clock, identity: str) -> None:
        """Create the recorder; ``identity`` is that of this process in the Lease, which begins with its pod."""
        self.omitted = 0
        """Number of changes that were not recorded because of a limit."""

        self._buffer = buffer
        self._shares = shares
        self._clock = clock
        self._pod, _, _ = identity.partition("_")
        self._last: dict[str, _LastRecord] = {}
        self._has_failed = False

    def on_leadership_acquired(self, keys: Collection[str], shards: HeldShards = HeldShards()) -> None:  # noqa: B008 - immutable
        """Begin a term; the first decision of each autoscaler in it is recorded."""
        self._last.clear()
        self._buffer.begin_term(self._pod, self._clock(), shards)
        del keys

    def on_leadership_lost(self) -> None:
        self._last.clear()
        self._buffer.end_term(self._clock())

    def on_deleted(self, key: str) -> None:
        """Record the deletion of an autoscaler that has a record; its first one has taken the bytes for this one."""
        last = self._last.pop(key, None)
        if last is not None and last.fingerprint is not None:
            now = self._clock()
            self._buffer.add(key, DecisionRecord(at=now, deleted=True), now)

    def on_decision(self, key: str, autoscaler: Autoscaler, decision: Decision) -> None:
        """Record a decision if it is a change; never raise, because scaling must not depend on the history."""
        try:
            self._record(key, autoscaler, decision)
        except Exception:
            self.omitted += 1
            if not self._has_failed:
                log.exception("decision cannot be recorded", extra={"autoscaler": key})
            self._has_failed = True

    def _record(self, key: str, autoscaler: Autoscaler, decision: Decision) -> None:
        last, current, at = self._last.get(key), fingerprint(autoscaler, decision), decision.at
        if last is not None and last.fingerprint == current and at < last.at + REPEAT_INTERVAL:
            return
        new_texts = {hash(text): len(text) for text in texts(decision)}
        known = last.texts if last is not None else frozenset()
        size = _RECORD_COST + sum(length for text, length in new_texts.items() if text not in known)
        if last is None or last.fingerprint is None:
            size += len(key) + _RECORD_COST
        namespace, _, _ = key.partition("/")
        if (last is not None and not last.take_token(at)) or not self._shares.take(namespace, size, at):
            self._omit(key, last, at)
            return
        omitted = 0 if last is None else last.omitted
        self._buffer.add(key, record_of(autoscaler, decision, omitted), self._clock())
        recorded = _LastRecord(current, at, frozenset(new_texts))
        if last is not None:
            recorded.tokens, recorded.refilled_at = last.tokens, last.refilled_at
        self._last[key] = recorded

    def _omit(self, key: str, last: _LastRecord | None, at: datetime) -> None:
        self.omitted += 1
        if last is None:
            last = self._last[key] = _LastRecord(None, at, frozenset())
        last.omitted += 1
