"""The connection of the moment: opened when it is needed, replaced when it is in doubt, closed when nobody is on it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from adapter.backends.asking.address import Address
from adapter.backends.nats.line import Line
from adapter.errors import BackendError, BackendUnreachable


class Lines:
    """Connections to any of several servers, one at a time."""

    def __init__(self, addresses: Sequence[Address], new: Callable[[], Awaitable[Line]]) -> None:
        self._addresses = deque(addresses)
        self._new = new
        self._current: Line | None = None
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Line]:
        """Lend the connection; whoever leaves without an answer leaves it in doubt."""
        line = await self._good()
        line.users += 1
        try:
            yield line
        except BaseException as error:
            line.is_doubtful |= not isinstance(error, BackendError) or isinstance(error, BackendUnreachable)
            raise
        finally:
            line.users -= 1
            if line is not self._current or not line.is_good:
                self._let_go(line)

    async def aclose(self) -> None:
        """Let go of all of them."""
        if self._current is not None:
            self._current.is_doubtful = True
            self._let_go(self._current)
        await asyncio.gather(*self._closing)

    async def _good(self) -> Line:
        async with self._opening:
            if self._current is None or not self._current.is_good:
                if self._current is not None:
                    self._let_go(self._current)
                self._current = None
                self._current = await self._opened()
            return self._current

    async def _opened(self) -> Line:
        """Connect to the first server that lets us; who does not is tried last the next time."""
        failure: BackendError = BackendUnreachable("not asked yet")
        for address in tuple(self._addresses):
            line = await self._new()
            try:
                await line.open(address)
            except BaseException as error:
                self._addresses.rotate(-1)
                self._let_go(line)
                if not isinstance(error, BackendUnreachable):
                    raise
                failure = error
            else:
                return line
        raise failure

    def _let_go(self, line: Line) -> None:
        """Close a connection, beside whoever waits for other things, as soon as nobody is on it."""
        if not line.users:
            task = asyncio.create_task(line.close(), name="nats close")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
