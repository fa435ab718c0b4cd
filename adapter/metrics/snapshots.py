"""Every rule's series, read once per interval for whoever asks, for as long as anyone asks.

A query that is read for the first time is fetched at once, and whoever comes meanwhile waits for the same fetch. From
then on it is fetched every interval, so that readers never wait. When nobody has read it for a while it is let go. A
failure is an outcome like any other: it replaces what was known, it is told to all readers, and it is tried again
soon, because it may be over.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Final, TypeAlias

from adapter import errors
from adapter.metrics.fetcher import Failed, Fetcher, Outcome
from adapter.metrics.snapshot import Snapshot
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_log = logging.getLogger(__name__)

IDLE_INTERVALS: Final = 4
SHORTEST_IDLE: Final = timedelta(minutes=1)
"""A query that nobody read for four intervals, and at least a minute, is let go: an HPA comes every 15 seconds."""

_FIRST_RETRY: Final = 1.0
_LATE: Final = 1.0

Difference: TypeAlias = tuple[RawSample, ...] | None
"""The series that changed; None: it cannot be said which, so all of them."""

Listener: TypeAlias = Callable[[Hashable, Difference], None]


class Kept:
    """One query that is being kept up to date."""

    __slots__ = (
        "deadline",
        "failures",
        "interval",
        "loop",
        "news",
        "outcome",
        "query",
        "read_at",
        "renewed_at",
        "shortest",
        "sooner",
        "task",
    )

    def __init__(self, query: Query, interval: timedelta, deadline: timedelta) -> None:
        self.query = query
        self.shortest = interval
        self.interval = interval.total_seconds()
        self.deadline = deadline
        self.outcome: Outcome | None = None
        self.failures = 0
        self.loop = asyncio.get_running_loop()  # asked once: to ask for each read would be dearer than the read
        self.read_at, self.renewed_at = self.loop.time(), 0.0
        self.news, self.sooner = asyncio.Event(), asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def suit(self, interval: timedelta, deadline: timedelta) -> None:
        """Fetch it at least so often and for as long as that from now on: another rule may ask the same."""
        if interval is self.shortest and deadline is self.deadline:
            return  # as nearly always: most queries are one rule's
        self.deadline = max(deadline, self.deadline)  # of two that are alike the newer one
        if interval <= self.shortest:
            is_sooner = interval < self.shortest
            self.shortest, self.interval = interval, interval.total_seconds()
            if is_sooner:
                self.sooner.set()

    @property
    def pause(self) -> float:
        """How long to wait until the next fetch: an interval; less after a failure, twice as long each time."""
        return min(self.interval, _FIRST_RETRY * 2 ** min(self.failures - 1, 16)) if self.failures else self.interval

    @property
    def patience(self) -> float:
        """How long it may go unread."""
        return max(self.interval * IDLE_INTERVALS, SHORTEST_IDLE.total_seconds())

    def is_current(self, now: float) -> bool:
        """Say whether the outcome may be told: the next one is due, or on its way and not late."""
        return now - self.renewed_at <= self.interval + self.deadline.total_seconds() + _LATE


class Snapshots:
    """The queries that are being read."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._kept: dict[Hashable, Kept] = {}
        self._listeners: list[Listener] = []
        self.watch: Callable[[bool], None] = lambda _is_known: None
        """Told of each read: whether the answer was at hand."""

    async def get(self, query: Query, interval: timedelta, deadline: timedelta) -> Outcome:
        """Say what the query finds now; wait only if that is not known."""
        kept = self._kept.get(query.key)
        if kept is None:
            kept = self._keep(query, interval, deadline)
        now = kept.read_at = kept.loop.time()
        kept.suit(interval, deadline)
        outcome = kept.outcome
        self.watch(outcome is not None and kept.is_current(now))
        while outcome is None or not kept.is_current(now):
            await kept.news.wait()
            outcome, now = kept.outcome, kept.loop.time()
        return outcome

    def peek(self, query: Query) -> Outcome | None:
        """Say what is known without asking for anything."""
        kept = self._kept.get(query.key)
        return None if kept is None else kept.outcome

    def forget(self, query: Query) -> None:
        """Let go of a query whose rule is gone; who still waits for it is told so."""
        kept = self._kept.pop(query.key, None)
        if kept is not None:
            self._dismiss(kept)

    def tell(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` whenever a query's outcome changes; return what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def aclose(self) -> None:
        """Stop fetching."""
        kept, self._kept = tuple(self._kept.values()), {}
        for each in kept:
            self._dismiss(each)
        await asyncio.gather(*(each.task for each in kept if each.task), return_exceptions=True)

    def _keep(self, query: Query, interval: timedelta, deadline: timedelta) -> Kept:
        kept = self._kept[query.key] = Kept(query, interval, deadline)
        kept.task = asyncio.create_task(self._renew_for_ever(kept), name=f"snapshot {query.backend}")
        return kept

    async def _renew_for_ever(self, kept: Kept) -> None:
        """Fetch, tell, wait; until nobody reads it any more."""
        loop = asyncio.get_running_loop()
        while loop.time() - kept.read_at <= kept.patience:
            started = loop.time()
            before = kept.outcome.indexed if isinstance(kept.outcome, Snapshot) else ()
            self._renewed(kept, await self._fetcher.fetch(kept.query, kept.deadline, before), loop.time())
            await self._until_next(kept, started)
        del self._kept[kept.query.key]

    async def _until_next(self, kept: Kept, started: float) -> None:
        """Wait until it is time to fetch again; who comes meanwhile and wants it sooner need not wait as long."""
        loop = asyncio.get_running_loop()
        while True:
            kept.sooner.clear()
            try:
                async with asyncio.timeout_at(max(loop.time(), self._next(kept, started))):
                    await kept.sooner.wait()
            except TimeoutError:
                return

    def _next(self, kept: Kept, started: float) -> float:
        """Say when to fetch again. Where questions go out together, all of one interval are due on the same beat."""
        due = started + kept.pause
        if kept.failures or not self._fetcher.is_aligned(kept.query.backend):
            return due
        beat = math.floor(due / kept.interval) * kept.interval
        # A timer may ring a moment early: that was this beat, and not the one before.
        return beat if beat - started > min(_LATE, kept.interval / 2) else beat + kept.interval

    def _renewed(self, kept: Kept, outcome: Outcome, now: float) -> None:
        before, kept.outcome, kept.renewed_at = kept.outcome, outcome, now
        kept.failures = kept.failures + 1 if isinstance(outcome, Failed) else 0
        kept.news.set()
        kept.news = asyncio.Event()
        changed = () if before is None else difference(before, outcome)
        if changed != ():
            for listener in tuple(self._listeners):
                try:
                    listener(kept.query.key, changed)
                except Exception:  # noqa: BLE001 - whoever listens badly must not end the fetching for all who read
                    _log.exception("who was told of new values failed", extra={"backend": kept.query.backend})

    def _dismiss(self, kept: Kept) -> None:
        if kept.task is not None:
            kept.task.cancel()
        if kept.outcome is None:
            gone = errors.BackendUnreachable("nobody asks for it any more")
            kept.outcome = Failed(gone, at=self._fetcher.now(), took=timedelta())
        kept.renewed_at = float("inf")  # the last word: whoever waits need wait no longer
        kept.news.set()


def difference(before: Outcome, after: Outcome) -> Difference:
    """List the series that are not as they were."""
    if isinstance(before, Failed) and isinstance(after, Failed):
        return () if before.error.failure is after.error.failure else None
    if isinstance(before, Failed) or isinstance(after, Failed) or len(before.rows) != len(after.rows):
        return None
    changed = []
    for old, new in zip(before.rows, after.rows, strict=True):
        if old.labels != new.labels:
            return None  # another order, or other series: not worth finding out
        if old.value != new.value and (old.value == old.value or new.value == new.value):  # NaN again is no news
            changed.append(new)
    return tuple(changed)
