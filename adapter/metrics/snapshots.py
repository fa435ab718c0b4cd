"""Snapshots of queries, refreshed once per interval while they are read.

The first read of a query starts a task that fetches it; concurrent reads wait for the same fetch. The task then fetches
again every interval, so that later reads do not wait, and ends when the query has not been read for a while. A failure
replaces the previous snapshot, is returned to all readers, and is retried with backoff.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeAlias

from adapter import errors
from adapter.metrics.fetcher import Fetcher, FetchFailure, FetchResult
from adapter.metrics.refresh_interval import MIN_ADAPTIVE_INTERVAL, RefreshInterval
from adapter.metrics.snapshot import ChangedLabels, Snapshot
from adapter.rules.query_builder import Query

_log = logging.getLogger(__name__)

IDLE_INTERVALS: Final = 4
MIN_IDLE_TIMEOUT: Final = timedelta(minutes=1)
"""A query is dropped after four intervals without a read, but not before a minute: an HPA reads every 15 seconds."""

_FIRST_RETRY_SECONDS: Final = 1.0
_TOLERANCE_SECONDS: Final = 1.0
"""How late a fetch may be before it is overdue, and how early its timer may fire."""

_NOTIFIED_SERIES: Final = 2000
"""Changed series in one notification: the event loop handles requests and reconciles between two of them."""

_COMPARED_SERIES: Final = 2000
"""More label sets are compared in a thread."""

Listener: TypeAlias = Callable[[Hashable, ChangedLabels], None]
"""Called with the key of a query and the labels of its changed series."""


@dataclass(slots=True, eq=False)
class RefreshedQuery:
    """A query that is fetched periodically, with its last result; times are those of the event loop."""

    query: Query
    deadline: timedelta
    refresh: RefreshInterval
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    """Stored, because get_running_loop() is a system call (getpid)."""

    read_at: float = 0.0
    fetched_at: float = 0.0
    failures: int = 0
    """Consecutive failed fetches up to now."""

    result: FetchResult | None = None
    updated: asyncio.Event = field(default_factory=asyncio.Event)
    rescheduled: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def interval(self) -> timedelta:
        return self.refresh.current

    def include(self, interval: timedelta | None, deadline: timedelta) -> None:
        """Use the shortest interval and the longest deadline of all rules that share the query."""
        self.deadline = max(deadline, self.deadline)
        if self.refresh.include(interval):
            self.rescheduled.set()

    @property
    def delay(self) -> float:
        """Seconds until the next fetch: the interval, or an exponential backoff up to it after failures."""
        interval = self.interval.total_seconds()
        return min(interval, _FIRST_RETRY_SECONDS * 2.0 ** min(self.failures - 1, 16)) if self.failures else interval

    @property
    def idle_timeout(self) -> float:
        """Seconds without a read after which the query is dropped."""
        return max(self.interval * IDLE_INTERVALS, MIN_IDLE_TIMEOUT).total_seconds()

    def current_result(self) -> FetchResult | None:
        """Return the last result, or None if there is none or the next fetch is overdue."""
        max_age = self.interval.total_seconds() + self.deadline.total_seconds() + _TOLERANCE_SECONDS
        return self.result if self.loop.time() - self.fetched_at <= max_age else None


class Snapshots:
    """The refreshed queries, by key."""

    def __init__(self, fetcher: Fetcher, on_read: Callable[[bool], None] = lambda _is_hit: None) -> None:
        """Create an empty set; ``on_read`` is called on each read with whether a current result was available."""
        self._fetcher = fetcher
        self._on_read = on_read
        self._queries: dict[Hashable, RefreshedQuery] = {}
        self._queries_of_tenants: Counter[str] = Counter()
        self._listeners: list[Listener] = []

    def current(self, query: Query, interval: timedelta | None, deadline: timedelta) -> FetchResult | None:
        """Return the current result as `get` does; None, and no read, if `get` would have to wait for a fetch."""
        refreshed = self._queries.get(query.key)
        if refreshed is None:
            return None
        refreshed.include(interval, deadline)
        result = refreshed.current_result()
        if is_hit := result is not None:
            refreshed.read_at = refreshed.loop.time()
            self._on_read(is_hit)
        return result

    async def get(self, query: Query, interval: timedelta | None, deadline: timedelta) -> FetchResult:
        """Return the current result of a query; wait for a fetch only if there is none.

        ``interval`` is None if the rule has none.
        """
        refreshed = self._queries.get(query.key)
        if refreshed is None:
            refresh = RefreshInterval(adapts=self._fetcher.has_adaptive_interval(query.backend))
            refreshed = self._queries[query.key] = RefreshedQuery(query, deadline, refresh)
            self._queries_of_tenants[query.tenant] += 1
            refreshed.task = asyncio.create_task(self._refresh(refreshed), name=f"snapshot {query.backend}")
        refreshed.read_at = refreshed.loop.time()
        refreshed.include(interval, deadline)
        result = refreshed.current_result()
        self._on_read(result is not None)
        while result is None:
            await refreshed.updated.wait()
            result = refreshed.current_result()
        return result

    def peek(self, query: Query) -> FetchResult | None:
        """Return the last result of a query without fetching."""
        refreshed = self._queries.get(query.key)
        return None if refreshed is None else refreshed.result

    def interval(self, query: Query) -> timedelta | None:
        """Return the current interval of a query; None if it is not being refreshed."""
        refreshed = self._queries.get(query.key)
        return None if refreshed is None else refreshed.interval

    def drop(self, query: Query) -> None:
        """Stop refreshing a query whose rule was removed; reads that wait for it get a failure."""
        refreshed = self._queries.get(query.key)
        if refreshed is not None:
            self._remove(query)
            self._stop(refreshed)
            refreshed.task = None  # the traceback of the cancelled task refers to ``refreshed``: a cycle

    def add_listener(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` whenever the result of a query changes; return a function that removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def aclose(self) -> None:
        queries, self._queries = tuple(self._queries.values()), {}
        self._queries_of_tenants.clear()
        for refreshed in queries:
            self._stop(refreshed)
        await asyncio.gather(*(refreshed.task for refreshed in queries if refreshed.task), return_exceptions=True)

    async def _refresh(self, refreshed: RefreshedQuery) -> None:
        """Fetch periodically until the query has not been read for its idle timeout."""
        loop = refreshed.loop
        while loop.time() - refreshed.read_at <= refreshed.idle_timeout:
            started = loop.time()
            result = await self._fetcher.fetch(refreshed.query, refreshed.deadline, refreshed.result)
            if isinstance(result, Snapshot):
                refreshed.refresh.record(result.duration, self._shortest_interval(refreshed.query))
            await self._update(refreshed, result, loop.time())
            await self._wait_for_next(refreshed, started)
        self._remove(refreshed.query)

    def _remove(self, query: Query) -> None:
        del self._queries[query.key]
        self._queries_of_tenants[query.tenant] -= 1
        if not self._queries_of_tenants[query.tenant]:
            del self._queries_of_tenants[query.tenant]

    def _shortest_interval(self, query: Query) -> timedelta:
        """Return the shortest adaptive interval at which the queries of a tenant stay within its budget."""
        if not query.tenant:
            return MIN_ADAPTIVE_INTERVAL
        return self._fetcher.budgets.shortest_interval(self._queries_of_tenants[query.tenant])

    async def _wait_for_next(self, refreshed: RefreshedQuery, started: float) -> None:
        """Wait until the next fetch is due; a read with a shorter interval reschedules it."""
        while True:
            refreshed.rescheduled.clear()
            try:
                async with asyncio.timeout_at(max(refreshed.loop.time(), self._next_fetch(refreshed, started))):
                    await refreshed.rescheduled.wait()
            except TimeoutError:
                return

    def _next_fetch(self, refreshed: RefreshedQuery, started: float) -> float:
        """Return the time of the next fetch; on a multiple of the interval if the backend sends batches."""
        due, interval = started + refreshed.delay, refreshed.interval.total_seconds()
        if refreshed.failures or not self._fetcher.is_aligned(refreshed.query.backend):
            return due
        aligned = math.floor(due / interval) * interval
        # A timer can fire slightly early. Then ``aligned`` is the multiple that this fetch was meant for.
        return aligned if aligned - started > min(_TOLERANCE_SECONDS, interval / 2) else aligned + interval

    async def _update(self, refreshed: RefreshedQuery, result: FetchResult, now: float) -> None:
        """Replace the result and notify the listeners of a change, of many changed series in parts."""
        before, refreshed.result, refreshed.fetched_at = refreshed.result, result, now
        refreshed.failures = refreshed.failures + 1 if isinstance(result, FetchFailure) else 0
        refreshed.updated.set()
        refreshed.updated = asyncio.Event()
        changed = () if before is None else await changed_labels(before, result)
        if changed is None:
            self._notify(refreshed.query, None)
            return
        for start in range(0, len(changed), _NOTIFIED_SERIES):
            self._notify(refreshed.query, changed[start : start + _NOTIFIED_SERIES])
            await asyncio.sleep(0)

    def _notify(self, query: Query, changed: ChangedLabels) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(query.key, changed)
            except Exception:  # noqa: BLE001 - a failing listener must not stop the refresh
                _log.exception("snapshot listener failed", extra={"backend": query.backend})

    def _stop(self, refreshed: RefreshedQuery) -> None:
        if refreshed.task is not None:
            refreshed.task.cancel()
        if refreshed.result is None:
            error = errors.BackendUnreachable("the rule was removed while its query was running")
            refreshed.result = FetchFailure(error, self._fetcher.clock(), timedelta())
        refreshed.fetched_at = float("inf")  # never overdue, so that waiting reads return
        refreshed.updated.set()


async def changed_labels(before: FetchResult, after: FetchResult) -> ChangedLabels:
    if isinstance(before, FetchFailure) and isinstance(after, FetchFailure):
        return () if before.error.failure is after.error.failure else None
    if isinstance(before, FetchFailure) or isinstance(after, FetchFailure):
        return None
    if after.label_sets is before.label_sets or len(after.values) <= _COMPARED_SERIES:
        return after.changes_since(before)
    return await asyncio.to_thread(after.changes_since, before)  # series appeared or disappeared among many
