"""Runs reconciles concurrently and moves slow ones to a separate slow pool.

A reconcile that has nothing to wait for is complete when `WorkerPool.start` returns: a coroutine runs up to its first
wait without a task. One that calls `continue_in_task` continues in a task of its own.

A reconcile that takes long, for example because an API does not respond, moves to the slow pool and frees its slot in
the main pool; the next reconcile of the same key starts in the slow pool. After a fast reconcile the key returns to the
main pool. If the slow pool is full, known slow keys wait before they start, but fast keys are not affected.

The slow pool is shared fairly: the next key is of the namespace with the fewest running slow reconciles, and a
namespace can occupy only a part of the pool.
"""

import asyncio
import logging
import types
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Generator
from datetime import timedelta
from functools import partial
from typing import Final

log = logging.getLogger(__name__)

SLOW_AFTER: Final = timedelta(milliseconds=100)
"""The duration after which a reconcile is slow. It is short, so that a busy API server does not block the workers."""

SLOW_POOL_SIZE: Final = 96
"""Slightly below the connection limit of the HTTP session."""

_NAMESPACE_SHARE: Final = 0.75
"""The part of the slow pool that the reconciles of one namespace can occupy."""


@types.coroutine
def continue_in_task() -> Generator[None, None, None]:
    """Suspend a reconcile before it waits for the first time; the worker pool continues it in a task.

    Before that it has no task, so nothing may wait, and nothing may use the current task, as `asyncio.timeout` does. In
    a task this lets others run once, like ``asyncio.sleep(0)``.
    """
    yield


class WorkerPool:
    """Runs each reconcile that has to wait in a task of its own."""

    def __init__(
        self,
        size: int,
        reconcile: Callable[[str], Coroutine[None, None, None]],
        on_capacity: Callable[[], None],
        slow_pool_size: int = SLOW_POOL_SIZE,
    ) -> None:
        self._size = size
        self._slow_pool_size = slow_pool_size
        self._namespace_limit = max(int(slow_pool_size * _NAMESPACE_SHARE), 1)
        self._reconcile = reconcile
        self._on_capacity = on_capacity
        """Called whenever another reconcile may start."""
        self._fast: set[str] = set()
        self._slow: set[str] = set()
        self._known_slow: set[str] = set()
        self._running: Counter[str] = Counter()
        """Number of slow reconciles by namespace. It may exceed the limit, because running reconciles become slow."""
        self._occupied = 0
        """Number of occupied slots of the slow pool. What exceeds the limit of a namespace occupies no slot."""
        self._waiting: dict[str, deque[str]] = {}
        """Waiting keys by namespace; the namespace that has waited longest for its turn is the first."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def has_capacity(self) -> bool:
        return len(self._fast) < self._size

    def start(self, key: str) -> None:
        """Start a reconcile; a key that was slow before starts in the slow pool or waits for it."""
        if key not in self._known_slow:
            reconcile = self._begin(key)
            if reconcile is not None:
                self._fast.add(key)
                self._continue(key, reconcile)
        else:
            self._waiting.setdefault(_namespace(key), deque()).append(key)
            self._start_waiting()

    def forget(self, key: str) -> None:
        """Remove a deleted key from the known slow keys."""
        self._known_slow.discard(key)

    async def close(self) -> None:
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, key: str) -> Coroutine[None, None, None] | None:
        """Run a reconcile until it has to wait; return it, or None if it is complete."""
        reconcile = self._reconcile(key)
        try:
            reconcile.send(None)
        except StopIteration:
            return None
        except Exception as error:  # noqa: BLE001 - it belongs to this autoscaler
            _log_failure(key, error)
            return None
        return reconcile

    def _continue(self, key: str, reconcile: Coroutine[None, None, None]) -> None:
        """Run the rest of a reconcile in a task."""
        loop, slow_after = asyncio.get_running_loop(), SLOW_AFTER.total_seconds()
        timer = loop.call_later(slow_after, self._move_to_slow_pool, key)
        task = loop.create_task(reconcile, name=f"reconcile {key}")
        self._tasks.add(task)
        task.add_done_callback(partial(self._on_done, key, timer))

    def _on_done(self, key: str, timer: asyncio.TimerHandle, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        timer.cancel()
        if timer.when() > asyncio.get_running_loop().time():
            self._known_slow.discard(key)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log_failure(key, error)
        self._end(key)

    def _move_to_slow_pool(self, key: str) -> None:
        if key in self._fast:
            self._fast.discard(key)
            self._add_slow(key)
            self._known_slow.add(key)
            self._on_capacity()

    def _end(self, key: str) -> None:
        self._fast.discard(key)
        if key in self._slow:
            self._remove_slow(key)
            self._start_waiting()
        self._on_capacity()

    def _start_waiting(self) -> None:
        while self._waiting and self._occupied < self._slow_pool_size:
            namespace = min(self._waiting, key=self._running.__getitem__)
            if self._running[namespace] >= self._namespace_limit:
                return
            keys = self._waiting.pop(namespace)
            key = keys.popleft()
            if keys:
                self._waiting[namespace] = keys
            reconcile = self._begin(key)
            if reconcile is None:
                self._known_slow.discard(key)
            else:
                self._add_slow(key)
                self._continue(key, reconcile)

    def _add_slow(self, key: str) -> None:
        namespace = _namespace(key)
        self._slow.add(key)
        self._running[namespace] += 1
        self._occupied += self._running[namespace] <= self._namespace_limit

    def _remove_slow(self, key: str) -> None:
        namespace = _namespace(key)
        self._slow.discard(key)
        self._occupied -= self._running[namespace] <= self._namespace_limit
        self._running[namespace] -= 1
        if not self._running[namespace]:
            del self._running[namespace]


def _log_failure(key: str, error: BaseException) -> None:
    log.error("reconcile failed", exc_info=error, extra={"autoscaler": key})


def _namespace(key: str) -> str:
    return key.partition("/")[0]
