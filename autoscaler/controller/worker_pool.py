"""How many visits happen at once, so that the slow ones never stand in the way of the others.

A visit that takes long (a target that does not answer, a metrics API that hangs) is moved to a lane of its own, and the
next visit of the same key begins there; with a visit that is prompt again, it is back among the others. When that lane
is full, slow keys wait for each other; nobody else does.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

log = logging.getLogger(__name__)

PATIENCE: Final = timedelta(milliseconds=100)
"""A visit that takes longer is slow: even one that only waits for a busy API server should not be waited for."""

SLOW_WIDTH: Final = 96
"""Somewhat fewer than the session has connections."""


class WorkerPool:
    """Runs visits, each in a task of its own."""

    def __init__(
        self,
        width: int,
        visit: Callable[[str], Awaitable[None]],
        left: Callable[[], None],
        slow_width: int = SLOW_WIDTH,
    ) -> None:
        self._width = width
        self._slow_width = slow_width
        self._visit = visit
        self._left = left
        """Told whenever there may be room again."""
        self._prompt: set[str] = set()
        self._slow: set[str] = set()
        self._known_slow: set[str] = set()
        self._waiting: deque[str] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def has_room(self) -> bool:
        """Tell whether another visit may begin."""
        return len(self._prompt) < self._width

    @property
    def is_empty(self) -> bool:
        """Tell whether nobody is being visited."""
        return not (self._tasks or self._waiting)

    def start(self, key: str) -> None:
        """Begin a visit, or let a slow key wait for the slow ones before it."""
        if key not in self._known_slow:
            self._prompt.add(key)
            self._begin(key)
        elif len(self._slow) < self._slow_width:
            self._slow.add(key)
            self._begin(key)
        else:
            self._waiting.append(key)

    def forget(self, key: str) -> None:
        """Forget that a key was slow."""
        self._known_slow.discard(key)

    async def close(self) -> None:
        """Give up all visits, and wait until they have ended."""
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, key: str) -> None:
        task = asyncio.get_running_loop().create_task(self._run(key), name=f"visit {key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, key: str) -> None:
        loop, patience = asyncio.get_running_loop(), PATIENCE.total_seconds()
        began, timer = loop.time(), loop.call_later(patience, self._step_aside, key)
        try:
            await self._visit(key)
        except Exception:
            log.exception("a visit failed", extra={"autoscaler": key})
        finally:
            timer.cancel()
            if loop.time() - began < patience:
                self._known_slow.discard(key)  # in whichever lane: who was slow once need not be so for ever
            self._end(key)

    def _step_aside(self, key: str) -> None:
        if key in self._prompt:
            self._prompt.discard(key)
            self._slow.add(key)
            self._known_slow.add(key)
            self._left()

    def _end(self, key: str) -> None:
        self._prompt.discard(key)
        self._slow.discard(key)
        while self._waiting and len(self._slow) < self._slow_width:
            waiting = self._waiting.popleft()
            self._slow.add(waiting)
            self._begin(waiting)
        self._left()
