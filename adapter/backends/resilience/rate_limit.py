"""Not more calls at once, and not more in a second, than a system allows; who comes in between waits."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Self


class Pace:
    """Lets calls begin one after another."""

    def __init__(self, *, at_once: int, per_second: float) -> None:
        self._at_once = asyncio.Semaphore(at_once)
        self._apart = 1 / per_second
        self._next = 0.0

    @classmethod
    def apart(cls, pace: timedelta, *, at_once: int) -> Self:
        """Make one by the least time between two calls; none: as fast as may be."""
        return cls(at_once=at_once, per_second=timedelta(seconds=1) / pace if pace else math.inf)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until a call may begin, and count it as under way inside of the block."""
        async with self._at_once:
            loop = asyncio.get_running_loop()
            now = loop.time()
            begins = max(now, self._next)
            self._next = begins + self._apart
            await asyncio.sleep(begins - now)
            yield
