"""A cache with single-flight loading, a TTL for each value and a maximum number of entries.

The authentication cache and the query cache use it. Concurrent readers of a missing key wait for one load. A load that
raises is not cached.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from datetime import timedelta
from typing import Generic, TypeVar

from cachetools import TLRUCache

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class TTLCache(Generic[Key, Value]):
    """Values by key; the least recently used entry is evicted when the cache is full."""

    def __init__(self, max_entries: int, timer: Callable[[], float] = time.monotonic) -> None:
        self._entries: TLRUCache[Key, tuple[Value, timedelta]] = TLRUCache(max_entries, ttu=_expiry, timer=timer)
        self._loading: dict[Key, asyncio.Task[Value]] = {}

    def get(self, key: Key) -> Value | None:
        """Return the cached value; None if there is none or it has expired."""
        try:  # Cache.get() would look the key up twice
            return self._entries[key][0]
        except KeyError:
            return None

    async def get_or_load(
        self, key: Key, load: Callable[[], Awaitable[Value]], ttl: Callable[[Value], timedelta]
    ) -> Value:
        """Return the cached value, or load it and cache it for ``ttl(value)``; a TTL of zero caches nothing."""
        try:
            return self._entries[key][0]
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
        self._entries[key] = value, ttl(value)
        return value

    def _loaded(self, key: Key, task: asyncio.Task[Value]) -> None:
        del self._loading[key]
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would log it when every waiter was cancelled


def _expiry(_key: object, entry: tuple[object, timedelta], now: float) -> float:
    return now + entry[1].total_seconds()
