"""One question to one backend: with a deadline that ends the wait, and an outcome whatever happens."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from adapter import errors
from adapter.backends.backend import Aligned, Backend
from adapter.metrics.snapshot import Snapshot
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_log = logging.getLogger(__name__)
_UNFORESEEN = "Internal error occurred: the cause is in the adapter's log"


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is no snapshot, and since when that is known."""

    error: errors.AdapterError
    """Who asked for what is not in its message: many may have asked."""

    at: datetime
    took: timedelta


Outcome: TypeAlias = Snapshot | Failed


class Fetcher:
    """Asks backends by name."""

    def __init__(self, backends: Mapping[str, Backend], clock: Callable[[], datetime]) -> None:
        self.backends = backends
        self.now = clock
        self.count = 0
        """How many questions were sent."""

        self.watch: Callable[[str, str, float], None] = lambda _backend, _result, _seconds: None
        """Told of each question: to whom, what came of it, in how many seconds."""

    def hop(self, backend: str) -> str:
        """Say what to call a backend in a message."""
        found = self.backends.get(backend)
        return backend if found is None else found.name

    def is_aligned(self, backend: str) -> bool:
        """Say whether this backend's queries are to be asked at the same moments, to go out as one call."""
        found: object = self.backends.get(backend)
        return isinstance(found, Aligned) and found.aligned

    async def fetch(self, query: Query, deadline: timedelta, indexed: Collection[str] = ()) -> Outcome:
        """Ask, and say what came of it; a backend that keeps us waiting longer than it may is left alone."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        result = "ok"
        try:
            rows = await self._rows(query, deadline)
        except Exception as unexpected:  # noqa: BLE001 - one rule's failure, of whatever kind, stays its own
            error = _told(unexpected, query)
            result = "internal error" if error.failure is None else error.failure.value
            return Failed(error, self.now(), timedelta(seconds=loop.time() - started))
        else:
            return Snapshot(rows, self.now(), timedelta(seconds=loop.time() - started), indexed)
        finally:
            self.watch(query.backend, result, loop.time() - started)

    async def _rows(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        backend = self.backends.get(query.backend)
        if backend is None:
            raise errors.BackendUnreachable("there is no backend of that name")
        self.count += 1
        limit = asyncio.timeout(deadline.total_seconds())
        try:
            async with limit:
                return await backend.fetch(query, deadline)
        except TimeoutError:
            if not limit.expired():
                raise
            raise errors.BackendTimeout(f"no answer within {deadline.total_seconds():g}s") from None


def _told(error: Exception, query: Query) -> errors.AdapterError:
    if isinstance(error, errors.MetricUnavailable):
        return error
    _log.error(
        "a backend failed in a way nobody foresaw",
        exc_info=error,
        extra={"backend": query.backend, "query": query.text[:1024]},
    )
    return errors.AdapterError(_UNFORESEEN)
