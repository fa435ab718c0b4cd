"""Gathers the queries of many rules into few requests, for backends that accept many queries per request.

Each caller waits for its own result until its own deadline. Rules are fetched at the same moments if the backend is
``aligned``; a ``Batcher`` combines the queries that arrive within a short time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Generic, TypeAlias, TypeVar

from adapter.backends.resilience.protected_call import REMOVED
from adapter.errors import BackendError, BackendRejected, BackendTimeout, BackendUnreachable

Q = TypeVar("Q")
R = TypeVar("R")

_DEADLINE_MARGIN: Final = 0.98
"""A query times out shortly before its caller does, and a request before its queries, so that the reason is known."""


@dataclass(eq=False, slots=True)
class _Pending(Generic[Q, R]):
    query: Q
    ends: float
    result: asyncio.Future[R]


Send: TypeAlias = Callable[[Sequence[Q], timedelta], Awaitable[Sequence[R | BackendError]]]
"""Sends queries within a timeout and returns a result or an error for each, in their order."""


class Batcher(Generic[Q, R]):
    """Gathers queries and sends them in batches."""

    def __init__(
        self,
        send: Send[Q, R],
        *,
        max_queries: int,
        linger: timedelta = timedelta(milliseconds=100),
        group_key: Callable[[Q], Hashable] = lambda _: None,
    ) -> None:
        self._send = send
        self._group_key = group_key
        """Only queries with the same group key are sent together and wait for each other's results."""

        self._max_queries = max_queries
        self._linger = linger.total_seconds()
        """How long the first query of a batch waits for more queries."""

        self._pending: list[_Pending[Q, R]] = []
        self._is_full = asyncio.Event()
        self._gathering: asyncio.Task[None] | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def query(self, query: Q, deadline: timedelta) -> R:
        """Send a query with the next batch; return its own result or raise its own error."""
        if self._is_closed:
            raise BackendUnreachable(REMOVED)
        loop = asyncio.get_running_loop()
        ends = loop.time() + deadline.total_seconds() * _DEADLINE_MARGIN
        pending: _Pending[Q, R] = _Pending(query, ends, loop.create_future())
        self._pending.append(pending)
        if len(self._pending) >= self._max_queries:
            self._is_full.set()
        if self._gathering is None:
            self._gathering = asyncio.create_task(self._gather(), name="batch")
        try:
            async with asyncio.timeout_at(pending.ends):
                return await pending.result
        except (TimeoutError, BackendTimeout) as error:  # the same message, whichever timeout fires first
            detail = getattr(error, "detail", "")
            raise BackendTimeout(f"no response within {deadline.total_seconds():g}s", detail=detail) from None
        finally:
            pending.result.cancel()
            if pending in self._pending:
                self._pending.remove(pending)

    async def aclose(self) -> None:
        """End running requests; queries that still wait fail."""
        self._is_closed = True
        running = [*self._requests, *([self._gathering] if self._gathering else [])]
        for pending in self._pending:
            if not pending.result.done():
                pending.result.set_exception(BackendUnreachable(REMOVED))
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _gather(self) -> None:
        """Send batches until no query is pending."""
        try:
            while self._pending:
                await self._wait_until_full()
                batch, self._pending = self._pending, []
                self._start_requests(batch)
        finally:
            self._gathering = None

    async def _wait_until_full(self) -> None:
        self._is_full.clear()
        if len(self._pending) < self._max_queries:
            try:
                async with asyncio.timeout(self._linger):
                    await self._is_full.wait()
            except TimeoutError:
                pass

    def _start_requests(self, batch: list[_Pending[Q, R]]) -> None:
        groups: dict[Hashable, list[_Pending[Q, R]]] = {}
        for pending in batch:
            groups.setdefault(self._group_key(pending.query), []).append(pending)
        for group in groups.values():
            for start in range(0, len(group), self._max_queries):
                part = group[start : start + self._max_queries]
                request = asyncio.create_task(self._request(part), name="batch request")
                self._requests.add(request)
                request.add_done_callback(self._requests.discard)

    async def _request(self, batch: list[_Pending[Q, R]]) -> None:
        """Send one batch while at least one caller waits for it, and distribute the results."""
        loop = asyncio.get_running_loop()
        timeout = (max(pending.ends for pending in batch) - loop.time()) * _DEADLINE_MARGIN
        sending = asyncio.ensure_future(self._send([pending.query for pending in batch], timedelta(seconds=timeout)))
        callers = asyncio.gather(*(pending.result for pending in batch), return_exceptions=True)
        try:
            await asyncio.wait((sending, callers), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()  # no effect if it is done
            await asyncio.gather(sending, return_exceptions=True)
            _distribute(batch, sending)
            callers.cancel()


def _distribute(batch: list[_Pending[Q, R]], sent: asyncio.Future[Sequence[R | BackendError]]) -> None:
    results: Sequence[R | BaseException]
    failure = BackendUnreachable(REMOVED) if sent.cancelled() else sent.exception()
    if failure is not None:
        results = [failure] * len(batch)
    elif len(sent.result()) != len(batch):
        results = [BackendRejected("the response does not contain a result for each query")] * len(batch)
    else:
        results = sent.result()
    for pending, result in zip(batch, results, strict=True):
        if pending.result.done():
            continue
        if isinstance(result, BackendError):
            # A new instance for each caller: raising an exception modifies it.
            pending.result.set_exception(type(result)(result.message, detail=result.detail))
        elif isinstance(result, BaseException):
            pending.result.set_exception(result)
        else:
            pending.result.set_result(result)
