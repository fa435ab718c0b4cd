"""Fetching of one query from one backend, with a deadline. Every error becomes a ``FetchFailure``."""

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
_INTERNAL_ERROR = "Internal error occurred: the cause is in the adapter's log"


@dataclass(frozen=True, slots=True)
class FetchFailure:
    """Why a fetch returned no snapshot."""

    error: errors.AdapterError
    """Without the name of a metric: several rules can share the query."""

    fetched_at: datetime
    duration: timedelta


FetchResult: TypeAlias = Snapshot | FetchFailure


class Fetcher:
    """Sends queries to backends by name."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        clock: Callable[[], datetime],
        on_fetch: Callable[[str, str, float], None] = lambda _backend, _result, _seconds: None,
    ) -> None:
        """Create a fetcher; ``on_fetch`` is called with the backend, ``ok`` or the failure class, and the seconds."""
        self.backends = backends
        self.clock = clock
        self.query_count = 0
        self._on_fetch = on_fetch

    def is_aligned(self, backend: str) -> bool:
        """Return whether queries of this backend are sent at the same times, so that they form one batch."""
        found: object = self.backends.get(backend)
        return isinstance(found, Aligned) and found.aligned

    async def fetch(self, query: Query, deadline: timedelta, indexed_labels: Collection[str] = ()) -> FetchResult:
        """Send a query and return its snapshot, or the failure if it fails or exceeds the deadline."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        result = "ok"
        try:
            series = await self._fetch_series(query, deadline)
        except Exception as unexpected:  # noqa: BLE001 - any failure of one rule must not affect the others
            error = _as_adapter_error(unexpected, query)
            result = "internal error" if error.failure is None else error.failure.value
            return FetchFailure(error, self.clock(), timedelta(seconds=loop.time() - started))
        else:
            return Snapshot(series, self.clock(), timedelta(seconds=loop.time() - started), indexed_labels)
        finally:
            self._on_fetch(query.backend, result, loop.time() - started)

    async def _fetch_series(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        backend = self.backends.get(query.backend)
        if backend is None:
            raise errors.BackendUnreachable(f"backend {query.backend!r} is not configured")
        self.query_count += 1
        timeout = asyncio.timeout(deadline.total_seconds())
        try:
            async with timeout:
                return await backend.fetch(query, deadline)
        except TimeoutError:
            if not timeout.expired():
                raise
            raise errors.BackendTimeout(f"no response within {deadline.total_seconds():g}s") from None


def _as_adapter_error(error: Exception, query: Query) -> errors.AdapterError:
    if isinstance(error, errors.MetricUnavailable):
        return error
    _log.error(
        "unexpected error in a backend",
        exc_info=error,
        extra={"backend": query.backend, "query": query.text[:1024]},
    )
    return errors.AdapterError(_INTERNAL_ERROR)
