"""Runs reconciles concurrently and moves slow ones to a separate slow pool.

A reconcile that takes long, for example because an API does not respond, moves to the slow pool and frees its slot in
the main pool; the next reconcile of the same key starts in the slow pool. After a fast reconcile the key returns to the
main pool. If the slow pool is full, known slow keys wait before they start, but fast keys are not affected.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

log = logging.getLogger(__name__)

SLOW_AFTER: Final = timedelta(milliseconds=100)
"""The duration after which a reconcile is slow. It is short, so that a busy API server does not block the workers."""

SLOW_POOL_SIZE: Final = 96
"""Slightly below the connection limit of the HTTP session."""


class WorkerPool:
    """Runs each reconcile in a task of its own."""

    def __init__(
        self,
        size: int,
        reconcile: Callable[[str], Awaitable[None]],
        on_capacity: Callable[[], None],
        slow_pool_size: int = SLOW_POOL_SIZE,
    ) -> None:
        self._size = size
        self._slow_pool_size = slow_pool_size
        self._reconcile = reconcile
        self._on_capacity = on_capacity
        """Called whenever another reconcile may start."""
        self._fast: set[str] = set()
        self._slow: set[str] = set()
        self._known_slow: set[str] = set()
        self._waiting: deque[str] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def has_capacity(self) -> bool:
        return len(self._fast) < self._size

    def start(self, key: str) -> None:
        """Start a reconcile; a key that was slow before starts in the slow pool or waits for it."""
        if key not in self._known_slow:
            self._fast.add(key)
            self._create_task(key)
        elif len(self._slow) < self._slow_pool_size:
            self._slow.add(key)
            self._create_task(key)
        else:
            self._waiting.append(key)

    def forget(self, key: str) -> None:
        """Remove a deleted key from the known slow keys."""
        self._known_slow.discard(key)

    async def close(self) -> None:
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _create_task(self, key: str) -> None:
        task = asyncio.get_running_loop().create_task(self._run(key), name=f"reconcile {key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, key: str) -> None:
        loop, slow_after = asyncio.get_running_loop(), SLOW_AFTER.total_seconds()
        started, timer = loop.time(), loop.call_later(slow_after, self._move_to_slow_pool, key)
        try:
            await self._reconcile(key)
        except Exception:
            log.exception("reconcile failed", extra={"autoscaler": key})
        finally:
            timer.cancel()
            if loop.time() - started < slow_after:
                self._known_slow.discard(key)
            self._end(key)

    def _move_to_slow_pool(self, key: str) -> None:
        if key in self._fast:
            self._fast.discard(key)
            self._slow.add(key)
            self._known_slow.add(key)
            self._on_capacity()

    def _end(self, key: str) -> None:
        self._fast.discard(key)
        self._slow.discard(key)
        while self._waiting and len(self._slow) < self._slow_pool_size:
            waiting = self._waiting.popleft()
            self._slow.add(waiting)
            self._create_task(waiting)
        self._on_capacity()
