"""Few at once of those that may last, and each of them some day: whose last turn is the longest ago goes first."""

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count


class Turns:
    """Lets in who waits."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()

    @asynccontextmanager
    async def turn(self, *, last: float, until: float) -> AsyncIterator[None]:
        """Have a turn for the length of the block; raise ``TimeoutError`` if there is none until then.

        ``last`` is when the turn before was.
        """
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._waiting, (last, next(self._numbers), mine))
        loop.call_soon(self._let_in)  # all that come at the same moment are there by then
        try:
            async with asyncio.timeout_at(until):
                await mine
            yield
        finally:
            if mine.done() and not mine.cancelled():
                self._free += 1
                self._let_in()

    def _let_in(self) -> None:
        while self._free and self._waiting:
            _, _, first = heapq.heappop(self._waiting)
            if not first.done():  # else it could not wait any longer
                self._free -= 1
                first.set_result(None)
