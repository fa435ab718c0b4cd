"""Fetching of one query from one backend, with a deadline and within the budget of its namespace.

Every error becomes a ``FetchFailure``.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from adapter import errors
from adapter.backends.backend import Aligned, Backend
from adapter.backends.resilience.rate_limit import RateLimit
from adapter.metrics.snapshot import Snapshot
from adapter.metrics.tenant_budgets import MAX_CONCURRENT_QUERIES, MAX_CONNECTIONS, TenantBudgets
from adapter.rules.query_builder import Query
from adapter.rules.rule import STATIC
from adapter.sample import RawSample

_log = logging.getLogger(__name__)
_MAX_CONCURRENT: Final = 16
"""Concurrent queries of a backend without a connection pool."""

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
        *,
        budgets: TenantBudgets | None = None,
        max_connections: Callable[[str], int | None] = lambda _backend: None,
        has_adaptive_interval: Callable[[str], bool] = lambda _backend: False,
    ) -> None:
        """Create a fetcher; ``on_fetch`` is called with the backend, ``ok`` or the failure class, and the seconds.

        ``max_connections`` returns the size of a backend's connection pool; None if it has none.
        ``has_adaptive_interval`` returns whether the interval of a backend's queries is adapted to their duration.
        """
        self.backends = backends
        self.clock = clock
        self.query_count = 0
        self.budgets = budgets or TenantBudgets()
        self._on_fetch = on_fetch
        self.has_adaptive_interval = has_adaptive_interval
        self._max_connections = max_connections
        self._rate_limits: dict[str, tuple[Backend, RateLimit]] = {}

    def is_aligned(self, backend: str) -> bool:
        """Return whether queries of this backend are sent at the same times, so that they form one batch."""
        found: object = self.backends.get(backend)
        return isinstance(found, Aligned) and found.aligned

    async def fetch(self, query: Query, deadline: timedelta, previous: FetchResult | None = None) -> FetchResult:
        """Send a query and return its snapshot, or the failure if it fails or exceeds the deadline.

        The snapshot shares labels and indexes with the previous one.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        result = "ok"
        try:
            series = await self._fetch_series(query, deadline)
            before = previous if isinstance(previous, Snapshot) else None
            snapshot = Snapshot(series, self.clock(), timedelta(seconds=loop.time() - started), before)
            self.budgets.store(query, snapshot)
        except Exception as unexpected:  # noqa: BLE001 - any failure of one rule must not affect the others
            error = _as_adapter_error(unexpected, query)
            result = "internal error" if error.failure is None else error.failure.value
            return FetchFailure(error.detach(), self.clock(), timedelta(seconds=loop.time() - started))
        else:
            return snapshot
        finally:
            if result != errors.OverBudget.failure:  # no fault of the backend; the budgets count it
                self._on_fetch(query.backend, result, loop.time() - started)

    async def _fetch_series(self, query: Query, deadline: timedelta) -> Sequence[RawSample]:
        backend = self.backends.get(query.backend)
        if backend is None:
            raise errors.BackendUnreachable(f"backend {query.backend!r} is not configured")
        if query.backend != STATIC:
            self.budgets.take_query(query)
        self.query_count += 1
        loop = asyncio.get_running_loop()
        queued, started = loop.time(), None
        timeout = asyncio.timeout(deadline.total_seconds())
        try:
            async with timeout, self._slot(query, backend):
                started = loop.time()
                return await backend.fetch(query, deadline - timedelta(seconds=started - queued))
        except errors.OverBudget:
            self.budgets.record_refusal(query, MAX_CONNECTIONS)
            raise
        except (TimeoutError, errors.BackendTimeout) as error:
            if started is None:
                raise self._no_slot(query, deadline) from None
            if isinstance(error, TimeoutError) and not timeout.expired():
                raise
            detail = getattr(error, "detail", "")  # the message has the deadline without the time spent waiting
            raise errors.BackendTimeout(f"no response within {deadline.total_seconds():g}s", detail=detail) from None

    def _slot(self, query: Query, backend: Backend) -> AbstractAsyncContextManager[None]:
        """Return a slot of the backend's connections. A backend that sends batches limits its requests itself."""
        if query.backend == STATIC or self.is_aligned(query.backend):
            return nullcontext()
        known = self._rate_limits.get(query.backend)
        if known is None or known[0] is not backend:
            max_concurrent = self._max_connections(query.backend) or _MAX_CONCURRENT
            known = self._rate_limits[query.backend] = backend, RateLimit(max_concurrent=max_concurrent)
        limit = self.budgets.limits.max_concurrent_queries if query.tenant else None
        return known[1].slot(query.namespace, limit)

    def _no_slot(self, query: Query, deadline: timedelta) -> errors.BackendError:
        waited = f"no free connection within {deadline.total_seconds():g}s"
        if query.tenant:
            return self.budgets.refusal(query, MAX_CONCURRENT_QUERIES, f"{waited}; use faster or fewer queries")
        return errors.OverBudget(f"{waited}: raise maxConnections of the backend")


def _as_adapter_error(error: Exception, query: Query) -> errors.AdapterError:
    if isinstance(error, errors.MetricUnavailable):
        return error
    _log.error(
        "unexpected error in a backend",
        exc_info=error,
        extra={"backend": query.backend, "query": query.text[:1024]},
    )
    return errors.AdapterError(_INTERNAL_ERROR)
