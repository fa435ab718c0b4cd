"""A limit on concurrent requests and on the interval between the starts of requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta


class RateLimit:
    """Delays requests that would exceed the limit."""

    def __init__(self, *, max_concurrent: int, min_interval: timedelta = timedelta()) -> None:
        self._slots = asyncio.Semaphore(max_concurrent)
        self._min_interval = min_interval.total_seconds()
        self._next_start = 0.0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait until a request may start; the request counts as running until the block ends."""
        async with self._slots:
            loop = asyncio.get_running_loop()
            now = loop.time()
            start = max(now, self._next_start)
            self._next_start = start + self._min_interval
            await asyncio.sleep(start - now)
            yield
