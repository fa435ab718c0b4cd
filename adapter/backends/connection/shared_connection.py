"""A connection that several questions share: opened when one needs it, replaced when in doubt, closed when unused."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from adapter.errors import BackendError, BackendUnreachable

C = TypeVar("C")
_ROUNDS: Final = 2
"""Of the loop, until it has heard of what came in before: that a connection was ended from there."""


@dataclass(eq=False, slots=True)
class _Lent(Generic[C]):
    connection: C
    users: int = 0
    is_doubtful: bool = False
    """Whether somebody waited in vain: who comes now takes another, who is on it stays."""


class Shared(Generic[C]):
    """One connection at a time, and those before it while somebody is still on them."""

    def __init__(
        self,
        opened: Callable[[], Awaitable[C]],
        closed: Callable[[C], Coroutine[None, None, None]],
        is_good: Callable[[C], bool],
    ) -> None:
        self._opened, self._closed, self._is_good = opened, closed, is_good
        self._current: _Lent[C] | None = None
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[C]:
        """Lend the connection; whoever leaves without an answer leaves it in doubt."""
        lent = await self._good()
        lent.users += 1
        try:
            yield lent.connection
        except BaseException as error:
            lent.is_doubtful |= not isinstance(error, BackendError) or isinstance(error, BackendUnreachable)
            raise
        finally:
            lent.users -= 1
            if lent is not self._current or not self._may_be_lent(lent):
                self._let_go(lent)

    def let_go(self, connection: C) -> None:
        """Close one, beside whoever waits for other things."""
        task = asyncio.create_task(self._closed(connection), name="close")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        """Close all; nobody uses them any more."""
        if self._current is not None:
            self._let_go(self._current)
            self._current = None
        await asyncio.gather(*self._closing)

    async def _good(self) -> _Lent[C]:
        async with self._opening:
            for _ in range(_ROUNDS if self._current else 0):
                await asyncio.sleep(0)
            if self._current is None or not self._may_be_lent(self._current):
                if self._current is not None:
                    self._let_go(self._current)
                self._current = None
                self._current = _Lent(await self._opened())
            return self._current

    def _may_be_lent(self, lent: _Lent[C]) -> bool:
        return not lent.is_doubtful and self._is_good(lent.connection)

    def _let_go(self, lent: _Lent[C]) -> None:
        if not lent.users:
            self.let_go(lent.connection)
