"""A cache with single-flight loading, a TTL for each value and a maximum number of entries.

The authentication cache and the query cache use it. Concurrent readers of a missing key wait for one load. A load that
raises is not cached.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from datetime import timedelta
from typing import Generic, TypeVar

from cachetools import LRUCache

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class TTLCache(Generic[Key, Value]):
    """Values by key; the least recently used entry is evicted when the cache is full."""

    def __init__(
        self,
        max_entries: int = 0,
        timer: Callable[[], float] = time.monotonic,
        entries: MutableMapping[Key, tuple[Value, float]] | None = None,
    ) -> None:
        """Create an empty cache; ``entries`` replaces the default storage, which has at most ``max_entries``."""
        self._entries = LRUCache[Key, tuple[Value, float]](max_entries) if entries is None else entries
        self._timer = timer
        self._loading: dict[Key, asyncio.Task[Value]] = {}

    def get(self, key: Key) -> Value | None:
        """Return the cached value; None if there is none or it has expired."""
        try:  # Cache.get() would look the key up twice
            value, expires = self._entries[key]
        except KeyError:
            return None
        return value if self._timer() < expires else None

    async def get_or_load(
        self, key: Key, load: Callable[[], Awaitable[Value]], ttl: Callable[[Value], timedelta]
    ) -> Value:
        """Return the cached value, or load it and cache it for ``ttl(value)``; a TTL of zero caches nothing."""
        try:
            value, expires = self._entries[key]
            if self._timer() < expires:
                return value
        except KeyError:
            pass
        loading = self._loading.get(key)
        if loading is None:
            loading = self._loading[key] = asyncio.create_task(self._load(key, load, ttl), name="cache load")
            loading.add_done_callback(lambda task: self._loaded(key, task))
        return await asyncio.shield(loading)  # cancelling one waiter must not cancel the load for the others

    async def aclose(self) -> None:
        """Cancel all loads."""
        loading = tuple(self._loading.values())
        for task in loading:
            task.cancel()
        await asyncio.gather(*loading, return_exceptions=True)

    async def _load(self, key: Key, load: Callable[[], Awaitable[Value]], ttl: Callable[[Value], timedelta]) -> Value:
        value = await load()
        if seconds := ttl(value).total_seconds():
            self._entries[key] = value, self._timer() + seconds
        return value

    def _loaded(self, key: Key, task: asyncio.Task[Value]) -> None:
        del self._loading[key]
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would log it when every waiter was cancelled
