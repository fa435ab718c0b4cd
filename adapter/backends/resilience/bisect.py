"""Sends batches so that an invalid or a slow query does not fail the other queries of its batch for long.

A rejected batch is split, at the positions that the error names or else in halves, until the invalid query is alone.
Slow queries are found by ``quarantine.py``. Both kinds are sent alone until they are answered.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Generic, TypeVar

from adapter.backends.resilience.quarantine import Quarantine
from adapter.errors import BackendError, BackendTimeout, BadQuery

Q = TypeVar("Q")
R = TypeVar("R")

_MAX_CONCURRENT_SLOW: Final = 3
"""Slow queries occupy connections until their deadline; batches need connections, too."""


@dataclass(frozen=True, slots=True)
class Batch(Generic[Q]):
    """Queries to send as one request."""

    queries: Sequence[Q]
    ends: float
    """When the request times out, on the loop's clock."""

    is_quarantined: bool = False

    def time_left(self) -> timedelta:
        """Return the time until the request times out."""
        return timedelta(seconds=max(0.0, self.ends - asyncio.get_running_loop().time()))


class BatchSender(Generic[Q, R]):
    """Sends queries in as few requests as possible; ``send`` and ``group_key`` are meant for a ``Batcher``."""

    def __init__(
        self,
        request: Callable[[Batch[Q]], Awaitable[Sequence[R | BackendError]]],
        *,
        key: Callable[[Q], str],
        group_key: Callable[[Q], Hashable] = lambda _: None,
        rejected_positions: Callable[[BadQuery], Container[int]] = lambda _: (),
    ) -> None:
        self._request = request
        """Sends one request; raises ``BadQuery`` if the backend rejects it because of one of the queries."""

        self._key = key
        self._group_key = group_key
        """Only queries with the same group key can be sent in one request."""

        self._rejected_positions = rejected_positions
        """The positions of invalid queries in the request, if the error names them."""

        self._quarantine = Quarantine()
        self._slow_slots = asyncio.Semaphore(_MAX_CONCURRENT_SLOW)

    def group_key(self, query: Q) -> Hashable:
        """Return equal keys for queries that are sent in one request; a quarantined query has its own."""
        key = self._key(query)
        return self._group_key(query), key if self._quarantine.get(key) else None

    async def send(self, queries: Sequence[Q], time_left: timedelta) -> Sequence[R | BackendError]:
        """Return a result or an error for each query, in their order."""
        ends = asyncio.get_running_loop().time() + time_left.total_seconds()
        groups: dict[Hashable, list[int]] = {}
        for position, query in enumerate(queries):
            groups.setdefault(self.group_key(query), []).append(position)
        return await self._send_parts(queries, list(groups.values()), ends)

    async def _send_parts(self, queries: Sequence[Q], parts: list[list[int]], ends: float) -> list[R | BackendError]:
        requests = (self._send_part([queries[position] for position in part], ends) for part in parts)
        results: dict[int, R | BackendError] = {}
        for part, found in zip(parts, await asyncio.gather(*requests), strict=True):
            results.update(zip(part, found, strict=True))
        return [results[position] for position in range(len(queries))]

    async def _send_part(self, queries: Sequence[Q], ends: float) -> Sequence[R | BackendError]:
        keys = [self._key(query) for query in queries]
        try:
            results = await self._send_request(queries, keys, ends)
        except BadQuery as error:
            if len(queries) > 1:
                return await self._send_parts(queries, self._split(len(queries), error), ends)
            self._quarantine.record_invalid(keys[0])
            return [error]
        except BackendError as error:
            return [error] * len(queries)
        self._quarantine.record_success(keys)
        return results

    async def _send_request(self, queries: Sequence[Q], keys: list[str], ends: float) -> Sequence[R | BackendError]:
        loop, quarantined = asyncio.get_running_loop(), self._quarantine.get(keys[0])
        is_slow = quarantined is not None and quarantined.is_slow
        begun = loop.time()
        late = BackendTimeout("no response in time", detail="quarantined")
        late.was_sent = False
        if quarantined is not None and begun < quarantined.retry_at:
            raise late
        try:
            async with asyncio.timeout_at(ends), self._slow_slots if is_slow else nullcontext():
                started, late = loop.time(), BackendTimeout("no response in time")
                return await self._request(Batch(queries, ends, is_quarantined=is_slow))
        except TimeoutError:
            pass
        except BackendTimeout as error:
            late = error
        # A query that waited for a slot for most of its time is not necessarily slow.
        if late.was_sent and started - begun < ends - started:
            self._quarantine.record_timeout(keys, loop.time())
        raise late

    def _split(self, count: int, error: BadQuery) -> list[list[int]]:
        rejected = self._rejected_positions(error)
        first = [position for position in range(count) if position in rejected]
        if not 0 < len(first) < count:
            first = list(range(count // 2))
        return [first, [position for position in range(count) if position not in first]]
