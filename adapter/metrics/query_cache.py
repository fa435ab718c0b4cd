"""Cached results of queries that contain a selector, one fetch of a query at a time.

There are as many of these queries as there are selectors, and any caller can make up selectors. So the size of the
cached results is bounded, a namespace cannot evict the results of others, and a query is fetched only when it is read.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from operator import attrgetter
from typing import Final

from adapter.metrics.fetcher import Fetcher, FetchFailure, FetchResult
from adapter.metrics.namespace_cache import NamespaceCache
from adapter.metrics.snapshot import Snapshot
from adapter.rules.query_builder import Query
from adapter.rules.rule import DEFAULT_INTERVAL
from adapter.ttl_cache import TTLCache

_MAX_BYTES: Final = 64 * 1024 * 1024
"""Estimated from the constants below."""

_BYTES_PER_RESULT: Final = 1024
_BYTES_PER_SERIES: Final = 512
_MAX_QUERY_LENGTH: Final = 8192
"""The result of a longer query is not cached, so that made-up selectors cannot fill the memory."""

_FAILURE_TTL: Final = timedelta(seconds=1)
"""Long enough that concurrent readers cause one request, short enough that a recovery is noticed at once."""


class QueryCache:
    """Results by query."""

    def __init__(
        self,
        fetcher: Fetcher,
        max_bytes: int = _MAX_BYTES,
        on_read: Callable[[bool], None] = lambda _is_hit: None,
    ) -> None:
        """Create an empty cache; ``on_read`` is called on each read with whether it was a hit."""
        self._fetcher = fetcher
        self._on_read = on_read
        self._results: TTLCache[Query, FetchResult] = TTLCache(
            timer=lambda: asyncio.get_running_loop().time(),
            entries=NamespaceCache(max_bytes, attrgetter("namespace"), _size),
        )

    def current(self, query: Query, interval: timedelta | None, deadline: timedelta) -> FetchResult | None:  # noqa: ARG002 - like those of `Snapshots.current`
        """Return the query's cached result; None, and no read, if `get` would have to fetch it."""
        cached = self.peek(query)
        if is_hit := cached is not None:
            self._on_read(is_hit)
        return cached

    async def get(self, query: Query, interval: timedelta | None, deadline: timedelta) -> FetchResult:
        """Return the query's result, at most ``interval`` old; None: the default, which is not adaptive here."""
        cached = self.peek(query)
        self._on_read(cached is not None)
        if cached is not None:
            return cached

        max_age = interval or DEFAULT_INTERVAL

        def ttl(result: FetchResult) -> timedelta:
            if len(query.text) > _MAX_QUERY_LENGTH:
                return timedelta()
            return min(max_age, _FAILURE_TTL) if isinstance(result, FetchFailure) else max_age

        return await self._results.get_or_load(query, lambda: self._fetcher.fetch(query, deadline), ttl)

    def peek(self, query: Query) -> FetchResult | None:
        """Return the cached result without fetching."""
        return self._results.get(query)

    async def aclose(self) -> None:
        await self._results.aclose()


def _size(query: Query, entry: tuple[FetchResult, float]) -> int:
    series = len(entry[0].series) if isinstance(entry[0], Snapshot) else 0
    return _BYTES_PER_RESULT + len(query.text) + _BYTES_PER_SERIES * series
