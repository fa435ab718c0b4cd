"""Limits of the whole process on the responses of backends: their memory, and the threads that parse them.

Both are shared fairly between namespaces (``RateLimit``), so that a tenant cannot take them from other namespaces or
from the operator on any backend. Responses up to ``SMALL`` bytes need no memory limit: the connections of the backends
limit their number. Of larger ones, four are in progress at a time, two for each tenant; of those above 8 MiB two, one
for each namespace. Others wait, without reading more of their body. An operation waits for the second limit while it
holds the first, never the reverse, so operations cannot block each other.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Final, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from adapter.backends.resilience.rate_limit import OPERATOR, RateLimit

P = ParamSpec("P")
T = TypeVar("T")

_MIB: Final = 1024 * 1024
SMALL: Final = _MIB
MAX_BYTES_OF_TENANT: Final = 16 * _MIB
"""So that a response of the operator and one of a tenant, both of the largest size, fit into memory."""

_MEMORY: Final = "other large responses: raise the deadline, or reduce the response to less than 1 MiB"
_THREAD: Final = "a thread that parses the response: use fewer queries, or simpler expressions on smaller documents"
_MAX_THREADS: Final = 4
_threads = ThreadPoolExecutor(_MAX_THREADS, "parse")  # not the default executor, which reads credentials


class MemoryLimit(NamedTuple):
    """The operations with a response of more than ``threshold`` bytes."""

    threshold: int
    slots: RateLimit
    max_of_operator: int
    max_of_tenant: int


class SharedLimits:
    """The limits of one event loop, of which the service has one."""

    def __init__(self) -> None:
        self.memory = (
            MemoryLimit(SMALL, RateLimit(max_concurrent=4, resource="the memory of large responses"), 4, 2),
            MemoryLimit(8 * _MIB, RateLimit(max_concurrent=2, resource="the memory of large responses"), 1, 1),
        )
        self.threads = RateLimit(max_concurrent=_MAX_THREADS, resource="a thread", ends_slow_requests=False)


_limits: WeakKeyDictionary[asyncio.AbstractEventLoop, SharedLimits] = WeakKeyDictionary()


class Operation:
    """What one operation uses: memory for its largest response until it ends, and threads."""

    def __init__(self, namespace: str, limits: SharedLimits) -> None:
        self.namespace = namespace
        self._limits = limits
        self._held: list[MemoryLimit] = []
        self._slots = AsyncExitStack()
        self._lock = asyncio.Lock()  # an operation may send several requests at the same time
        self._is_ended = False
        self.waits_for = ""
        """Empty if the operation does not wait for other operations; still set if it was cancelled then."""

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Release what the operation reserved in the block when the block ends."""
        try:
            async with self._slots:
                yield
        finally:
            self._is_ended = True

    async def reserve(self, size: int) -> None:
        """Wait until a response of this size may be in memory."""
        for limit in self._limits.memory:
            if size > limit.threshold and limit not in self._held:
                async with self._lock:
                    await self._hold(limit)

    async def _hold(self, limit: MemoryLimit) -> None:
        if limit in self._held:
            return
        maximum = limit.max_of_operator if self.namespace == OPERATOR else limit.max_of_tenant
        slot = limit.slots.slot(self.namespace, maximum)
        self.waits_for = _MEMORY
        await slot.__aenter__()
        self.waits_for = ""
        if self._is_ended:
            await slot.__aexit__(None, None, None)
        else:
            self._held.append(limit)
            self._slots.push_async_exit(slot)

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Run a function in a thread when it is the turn of the namespace; a tenant has one thread."""
        self.waits_for = _THREAD
        # A task, because a thread cannot be ended: it keeps its slot if the operation is cancelled.
        task = asyncio.create_task(self._run_in_slot(function), name="parse")
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self.waits_for:
                task.cancel()
            else:
                task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # else asyncio logs it
            raise
        finally:
            del task  # a reference cycle with an exception's traceback would keep the response in memory

    async def _run_in_slot(self, function: Callable[[], T]) -> T:
        async with self._limits.threads.slot(self.namespace, None if self.namespace == OPERATOR else 1):
            self.waits_for = ""
            return await asyncio.get_running_loop().run_in_executor(_threads, function)


_current: ContextVar[Operation | None] = ContextVar("operation", default=None)


@asynccontextmanager
async def operation(namespace: str) -> AsyncIterator[Operation]:
    """Make ``reserve`` and ``parse_in_thread`` in the block part of one operation of the namespace."""
    created = _create(namespace)
    token = _current.set(created)
    try:
        async with created.run():
            yield created
    finally:
        _current.reset(token)


def is_of_tenant() -> bool:
    """Return whether the current operation is on behalf of a namespace."""
    current = _current.get()
    return current is not None and current.namespace != OPERATOR


async def reserve(size: int) -> None:
    """Wait until a response of this size may be in memory, until the end of the operation that requested it."""
    current = _current.get()
    if current is not None:
        await current.reserve(size)


async def parse_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that parses a response in a thread: a megabyte would block the event loop."""
    current = _current.get() or _create(OPERATOR)
    return await current.in_thread(partial(function, *args, **kwargs))


def _create(namespace: str) -> Operation:
    loop = asyncio.get_running_loop()
    limits = _limits.get(loop)
    if limits is None:
        limits = _limits[loop] = SharedLimits()
    return Operation(namespace, limits)
