"""The writer: stores the buffer in the background. A failure never affects scaling.

The open segment is written again at most every ``WRITE_INTERVAL`` if it has new records, and every ``MAX_INTERVAL`` if
it has none, so that readers know until when there was a leader. So the number of requests does not depend on the
number of autoscalers.
"""

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta
from typing import Final

from msgspec.structs import replace
from prometheus_client import CollectorRegistry, Counter

from adapter.config.model import DecisionHistory
from adapter.history.recorder import DecisionRecorder
from adapter.history.segments import compress, expired
from adapter.history.store import SegmentStore
from adapter.history.write_buffer import BufferedSegment, WriteBuffer
from autoscaler.kube.errors import Forbidden, KubeError, describe
from autoscaler.ports import Clock

log = logging.getLogger(__name__)

WRITE_INTERVAL: Final = timedelta(seconds=15)
MAX_INTERVAL: Final = timedelta(seconds=60)
_LAST_WRITE_TIMEOUT: Final = timedelta(seconds=3)
_RETENTION_INTERVAL: Final = timedelta(minutes=10)
_MAX_DELETED: Final = 100
"""Segments deleted at a time, so that a lowered limit does not cause a burst of requests."""

_REJECTED: Final = frozenset({413, 422})
"""Codes with which the API server rejects a segment permanently; a retry would block all later segments."""

_QUOTA: Final = "exceeded quota"
"""Part of the API server's message if a ResourceQuota does not allow another object; the code is 403."""


class HistoryMetrics:
    """Counters of the decision history, for ``/metrics``."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.writes = Counter(
            "steadyscale_decision_history_writes",
            "Number of writes of segments of the decision history, by result.",
            ["result"],
            registry=registry,
        )
        self.written_bytes = Counter(
            "steadyscale_decision_history_written_bytes",
            "Compressed bytes of the segments of the decision history that were written.",
            registry=registry,
        )
        self.lost_records = Counter(
            "steadyscale_decision_history_lost_records",
            "Number of records of the decision history that were dropped, by reason.",
            ["reason"],
            registry=registry,
        )


class HistoryWriter:
    """Stores the segments of a buffer, and deletes old ones."""

    def __init__(
        self,
        buffer: WriteBuffer,
        recorder: DecisionRecorder,
        store: SegmentStore,
        settings: DecisionHistory,
        clock: Clock,
        metrics: HistoryMetrics,
    ) -> None:
        self.problem: str | None = None
        """Why the last write failed; None if it succeeded."""

        self._buffer = buffer
        self._recorder = recorder
        self._store = store
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._term_ended = asyncio.Event()
        self._retained_at = float("-inf")
        self._counted = {"storage": 0, "limit": 0}
        buffer.on_term_end = self._term_ended.set

    async def run(self) -> None:
        """Store the buffer until cancelled, then once more."""
        idle = timedelta(0)
        try:
            while True:
                self._term_ended.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(WRITE_INTERVAL.total_seconds()):
                        await self._term_ended.wait()
                idle += WRITE_INTERVAL
                if await self.write(force=idle >= MAX_INTERVAL):
                    idle = timedelta(0)
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WRITE_TIMEOUT.total_seconds()):
                    await self.write()

    async def write(self, *, force: bool = False) -> bool:
        """Store all segments with new records, with ``force`` all; return whether any was written successfully."""
        self._count_lost()
        written = False
        for segment in tuple(self._buffer.segments()):
            if force or segment.is_sealed or len(segment) > max(segment.stored_records, 0):
                try:
                    await self._write_segment(segment)
                    written = True
                except KubeError as error:
                    self._metrics.writes.labels("failed").inc()
                    if error.code not in _REJECTED or segment not in self._buffer.sealed:
                        self._report(error)
                        return False
                    self._buffer.drop(segment)
                    extra = {"segment": segment.name, "records": len(segment), "error": describe(error)}
                    log.warning(
                        "segment of the decision history dropped, because the API server rejects it", extra=extra
                    )
        try:
            await self._delete_expired()
        except KubeError as error:
            log.warning("old segments of the decision history cannot be deleted", extra={"error": describe(error)})
        if written and self.problem is not None:
            log.info("decision history is stored again")
            self.problem = None
        return written

    async def _write_segment(self, segment: BufferedSegment) -> None:
        count, info, entries = len(segment), segment.info(self._clock()), segment.entries()
        compressed = await asyncio.to_thread(compress, entries)
        exists = segment.stored_records >= 0
        await self._store.write(replace(info, size=len(compressed)), compressed, exists=exists)
        self._metrics.writes.labels("succeeded").inc()
        self._metrics.written_bytes.inc(len(compressed))
        segment.stored_records = count
        if info.is_sealed and segment in self._buffer.sealed:
            self._buffer.sealed.remove(segment)

    async def _delete_expired(self) -> None:
        loop_time = asyncio.get_running_loop().time()
        if self._buffer.open is None or loop_time < self._retained_at + _RETENTION_INTERVAL.total_seconds():
            return
        self._retained_at = loop_time
        limits = self._settings
        old = expired(await self._store.list(), self._clock(), limits.max_bytes, limits.max_age)
        for segment in old[:_MAX_DELETED]:
            await self._store.delete(segment.name)

    def _count_lost(self) -> None:
        totals = {"storage": self._buffer.lost_records, "limit": self._recorder.omitted}
        for reason, total in totals.items():
            self._metrics.lost_records.labels(reason).inc(total - self._counted[reason])
        self._counted = totals

    def _report(self, error: KubeError) -> None:
        """Log a failure once, until it changes."""
        problem = f"the decision history cannot be stored: {describe(error)}"
        if isinstance(error, Forbidden) and _QUOTA in describe(error):
            problem += "; raise the ResourceQuota, or lower decisionHistory.maxBytes"
        elif isinstance(error, Forbidden):
            problem += "; apply the Role steadyscale:decision-history, or set decisionHistory.enabled to false"
        if problem != self.problem:
            log.warning("decision history cannot be stored", extra={"error": describe(error)})
        self.problem = problem
