"""A limit on the memory of large responses that are read and decoded at the same time, in the whole process.

Responses up to ``SMALL`` bytes are not limited: the connections of the backends limit their number. Of larger ones,
four are in progress at a time, and of those above 8 MiB one. Others wait, without reading more of their body. An
operation waits for the second limit while it holds the first, never the reverse, so operations cannot block each other.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

_MIB: Final = 1024 * 1024
SMALL: Final = _MIB
Limits: TypeAlias = Sequence[tuple[int, asyncio.Semaphore]]
"""Numbers of bytes, each with the semaphore of the operations with a larger response; the smallest number first."""


def create_limits() -> Limits:
    return (SMALL, asyncio.Semaphore(4)), (8 * _MIB, asyncio.Semaphore(1))


_limits: WeakKeyDictionary[asyncio.AbstractEventLoop, Limits] = WeakKeyDictionary()
"""Of the process; semaphores belong to an event loop, of which the service has one."""


class Reservation:
    """The memory of one operation: it grows with the largest response and is released when the operation ends."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held: list[asyncio.Semaphore] = []
        self._lock = asyncio.Lock()  # an operation may send several requests at the same time
        self._is_released = False
        self.is_waiting = False
        """Whether the operation waits for other operations; still True if it was cancelled then."""

    async def include(self, size: int) -> None:
        """Wait until a response of this size may be in memory."""
        for threshold, semaphore in self._limits:
            if size > threshold and semaphore not in self._held:
                async with self._lock:
                    await self._acquire(semaphore)

    async def _acquire(self, semaphore: asyncio.Semaphore) -> None:
        if semaphore in self._held:
            return
        self.is_waiting = True
        await semaphore.acquire()
        self.is_waiting = False
        if self._is_released:
            semaphore.release()
        else:
            self._held.append(semaphore)

    def release(self) -> None:
        self._is_released = True
        while self._held:
            self._held.pop().release()


_current: ContextVar[Reservation | None] = ContextVar("reservation", default=None)


@contextmanager
def reservation() -> Iterator[Reservation]:
    """Release what the responses to the requests in the block reserved when the block ends."""
    loop = asyncio.get_running_loop()
    limits = _limits.get(loop)
    if limits is None:
        limits = _limits[loop] = create_limits()
    reserved = Reservation(limits)
    token = _current.set(reserved)
    try:
        yield reserved
    finally:
        _current.reset(token)
        reserved.release()


async def reserve(size: int) -> None:
    """Wait until a response of this size may be in memory, until the end of the operation that requested it."""
    reserved = _current.get()
    if reserved is not None:
        await reserved.include(size)
