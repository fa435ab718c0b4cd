"""A connection that several queries share: opened on demand, replaced when it may be broken, closed when unused."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from adapter.errors import BackendError, BackendUnreachable

C = TypeVar("C")
_LOOP_CYCLES: Final = 2
"""Event loop cycles until asyncio has processed a close by the server."""


@dataclass(eq=False, slots=True)
class _Entry(Generic[C]):
    connection: C
    users: int = 0
    may_be_broken: bool = False
    """Whether a query got no response: new queries use another connection, current users keep this one."""


class SharedConnection(Generic[C]):
    """The current connection, and replaced ones while they are in use."""

    def __init__(
        self,
        open_connection: Callable[[], Awaitable[C]],
        close_connection: Callable[[C], Coroutine[None, None, None]],
        is_usable: Callable[[C], bool],
    ) -> None:
        self._open, self._close, self._is_usable = open_connection, close_connection, is_usable
        self._current: _Entry[C] | None = None
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[C]:
        """Return the connection; a block that ends without a response from the server marks it as broken."""
        entry = await self._usable_entry()
        entry.users += 1
        try:
            yield entry.connection
        except BaseException as error:
            entry.may_be_broken |= not isinstance(error, BackendError) or isinstance(error, BackendUnreachable)
            raise
        finally:
            entry.users -= 1
            if entry is not self._current or not self._can_be_shared(entry):
                self._close_if_unused(entry)

    def close_in_background(self, connection: C) -> None:
        task = asyncio.create_task(self._close(connection), name="close")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        """Close all connections; none may be in use."""
        if self._current is not None:
            self._close_if_unused(self._current)
            self._current = None
        await asyncio.gather(*self._closing)

    async def _usable_entry(self) -> _Entry[C]:
        async with self._opening:
            for _ in range(_LOOP_CYCLES if self._current else 0):
                await asyncio.sleep(0)
            if self._current is None or not self._can_be_shared(self._current):
                if self._current is not None:
                    self._close_if_unused(self._current)
                self._current = None
                self._current = _Entry(await self._open())
            return self._current

    def _can_be_shared(self, entry: _Entry[C]) -> bool:
        return not entry.may_be_broken and self._is_usable(entry.connection)

    def _close_if_unused(self, entry: _Entry[C]) -> None:
        if not entry.users:
            self.close_in_background(entry.connection)
