"""Gathers the queries of many rules into few requests, for backends that accept many queries per request.

Rules are fetched at the same moments if the backend is ``aligned``; a ``Batcher`` combines the queries that arrive
within a short time. Each caller waits for its own result until its own deadline.

An invalid or a slow query does not fail the other queries of its batch for long. A rejected batch is bisected: it is
split, at the positions that the error names or else in halves, until the invalid query is alone. Slow queries are found
by ``quarantine.py``. Both kinds are sent alone until they succeed. A batch contains queries of one namespace only, so
that the queries of a tenant never fail or delay those of another.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Generic, TypeVar

from adapter.backends.resilience.protected_call import REMOVED
from adapter.backends.resilience.quarantine import Quarantine
from adapter.backends.resilience.rate_limit import OPERATOR, RateLimit
from adapter.errors import BackendError, BackendRejected, BackendTimeout, BackendUnreachable, BadQuery

Q = TypeVar("Q")
R = TypeVar("R")

_DEADLINE_MARGIN: Final = 0.98
"""A query times out shortly before its caller does, and a request before its queries, so that the reason is known."""

_MAX_CONCURRENT_SLOW: Final = 3
"""Slow queries occupy connections until their deadline; batches need connections, too."""


@dataclass(frozen=True, slots=True)
class Batch(Generic[Q]):
    """Queries to send as one request."""

    queries: Sequence[Q]
    ends: float
    """When the request times out, on the loop's clock."""

    namespace: str = OPERATOR
    is_quarantined: bool = False

    def time_left(self) -> timedelta:
        return timedelta(seconds=max(0.0, self.ends - asyncio.get_running_loop().time()))


@dataclass(eq=False, slots=True)
class _Pending(Generic[Q, R]):
    query: Q
    namespace: str
    key: str
    ends: float
    result: asyncio.Future[R]


class Batcher(Generic[Q, R]):
    """Gathers queries and sends them in as few requests as possible."""

    def __init__(
        self,
        request: Callable[[Batch[Q]], Awaitable[Sequence[R | BackendError]]],
        *,
        key: Callable[[Q], str],
        max_queries: int,
        linger: timedelta = timedelta(milliseconds=100),
        group_key: Callable[[Q], Hashable] = lambda _: None,
        rejected_positions: Callable[[BadQuery], Container[int]] = lambda _: (),
    ) -> None:
        self._request = request
        """Sends one request; returns a result or an error for each query, in their order. Raises ``BadQuery`` if the
        backend rejects the request because of one of the queries."""

        self._key = key
        self._max_queries = max_queries
        self._linger = linger.total_seconds()
        """How long the first query of a batch waits for more queries."""

        self._group_key = group_key
        """Only queries with the same group key can be sent in one request."""

        self._rejected_positions = rejected_positions
        """The positions of invalid queries in the request, if the error names them."""

        self._quarantine = Quarantine()
        self._slow_slots = RateLimit(max_concurrent=_MAX_CONCURRENT_SLOW)
        self._waiting: set[_Pending[Q, R]] = set()
        self._gathered: list[_Pending[Q, R]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def query(self, query: Q, deadline: timedelta, namespace: str = OPERATOR) -> R:
        """Send a query with the next batch of its namespace; return its own result or raise its own error."""
        if self._is_closed:
            raise BackendUnreachable(REMOVED)
        loop = asyncio.get_running_loop()
        ends = loop.time() + deadline.total_seconds() * _DEADLINE_MARGIN
        key = f"{namespace} {self._key(query)}"
        pending: _Pending[Q, R] = _Pending(query, namespace, key, ends, loop.create_future())
        self._waiting.add(pending)
        self._gathered.append(pending)
        if len(self._gathered) in {1, self._max_queries}:
            if self._timer is not None:
                self._timer.cancel()
            is_full = len(self._gathered) >= self._max_queries
            self._timer = loop.call_later(0 if is_full else self._linger, self._start_requests)
        try:
            async with asyncio.timeout_at(ends):
                return await pending.result
        except (TimeoutError, BackendTimeout) as error:  # the same message, whichever timeout fires first
            detail = getattr(error, "detail", "")
            raise BackendTimeout(f"no response within {deadline.total_seconds():g}s", detail=detail) from None
        finally:
            pending.result.cancel()
            self._waiting.discard(pending)

    async def aclose(self) -> None:
        """End running requests; queries that still wait fail."""
        self._is_closed = True
        for pending in self._waiting:
            _resolve(pending, BackendUnreachable(REMOVED))
        await asyncio.gather(*self._requests, return_exceptions=True)

    def _start_requests(self) -> None:
        groups: dict[Hashable, list[_Pending[Q, R]]] = {}
        for pending in self._gathered:
            if not pending.result.done():
                alone = pending.key if self._quarantine.get(pending.key) else None
                group_key = (pending.namespace, self._group_key(pending.query), alone)
                groups.setdefault(group_key, []).append(pending)
        self._gathered = []
        for group in groups.values():
            for start in range(0, len(group), self._max_queries):
                self._start_request(group[start : start + self._max_queries])

    def _start_request(self, batch: list[_Pending[Q, R]]) -> None:
        now = asyncio.get_running_loop().time()
        ends = now + (max(pending.ends for pending in batch) - now) * _DEADLINE_MARGIN
        request = asyncio.create_task(self._send(batch, ends), name="batch request")
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)
        callers = asyncio.gather(*(pending.result for pending in batch), return_exceptions=True)
        callers.add_done_callback(lambda _: request.cancel())  # no caller waits for it any more

    async def _send(self, batch: list[_Pending[Q, R]], ends: float) -> None:
        """Send a batch and distribute its results."""
        results: Sequence[R | Exception]
        try:
            results = await self._send_once(batch, ends)
        except BadQuery as error:
            if len(batch) > 1:
                await asyncio.gather(*(self._send(part, ends) for part in self._split(batch, error)))
                return
            self._quarantine.record_invalid(batch[0].key)
            results = [error]
        except Exception as error:  # noqa: BLE001 - raised by the callers
            results = [error] * len(batch)
        else:
            self._quarantine.record_success(pending.key for pending in batch)
        for pending, result in zip(batch, results, strict=True):
            _resolve(pending, result)

    async def _send_once(self, batch: list[_Pending[Q, R]], ends: float) -> Sequence[R | BackendError]:
        loop, quarantined = asyncio.get_running_loop(), self._quarantine.get(batch[0].key)
        is_slow = quarantined is not None and quarantined.is_slow
        begun = loop.time()
        if quarantined is not None and begun < quarantined.retry_at:
            raise BackendTimeout("no response in time", detail="quarantined")
        started = ends  # until it gets a slot
        try:
            namespace = batch[0].namespace
            async with asyncio.timeout_at(ends), self._slow_slots.slot(namespace) if is_slow else nullcontext():
                started = loop.time()
                queries = [pending.query for pending in batch]
                results = await self._request(Batch(queries, ends, namespace, is_quarantined=is_slow))
        except (TimeoutError, BackendTimeout) as error:
            was_sent = not isinstance(error, BackendTimeout) or error.was_sent
            # A query that waited for a slot for most of its time is not necessarily slow.
            if was_sent and started - begun < ends - started:
                self._quarantine.record_timeout((pending.key for pending in batch), loop.time())
            raise
        if len(results) != len(batch):
            raise BackendRejected("the response does not contain a result for each query")
        return results

    def _split(self, batch: list[_Pending[Q, R]], error: BadQuery) -> tuple[list[_Pending[Q, R]], ...]:
        rejected = self._rejected_positions(error)
        first = [pending for position, pending in enumerate(batch) if position in rejected]
        rest = [pending for position, pending in enumerate(batch) if position not in rejected]
        middle = len(batch) // 2
        return (first, rest) if first and rest else (batch[:middle], batch[middle:])


def _resolve(pending: _Pending[Q, R], result: R | Exception) -> None:
    if pending.result.done():
        return
    if isinstance(result, BackendError):
        # A new instance for each caller: raising an exception modifies it.
        pending.result.set_exception(type(result)(result.message, detail=result.detail))
    elif isinstance(result, Exception):
        pending.result.set_exception(result)
    else:
        pending.result.set_result(result)
