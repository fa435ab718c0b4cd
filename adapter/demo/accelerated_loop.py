"""An event loop whose clock runs faster than real time while it waits, and at normal speed while it works.

Sleeps, timeouts and timestamps all use the loop's clock, so no other code has to know about the speed. Because only
waiting is accelerated, a slow machine makes the demo take longer but does not cause timeouts.
"""

import asyncio
import selectors
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from selectors import SelectorKey
from typing import Final

_MAX_OVERRUN: Final = 1.0
"""How many seconds of loop time a wait may take longer than requested. A longer delay is caused by a busy machine."""


class _AcceleratedSelector(selectors.DefaultSelector):
    """Waits for a fraction of the requested time, and keeps the loop time."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self.speed = speed
        self._loop_time = self._real_time = time.monotonic()

    def now(self) -> float:
        """Return the loop time, in seconds; never behind real time."""
        return self._loop_time + time.monotonic() - self._real_time

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        started, self._loop_time = time.monotonic(), self.now()
        ready = super().select(None if timeout is None else timeout / self.speed)
        self._real_time = time.monotonic()
        passed = (self._real_time - started) * self.speed
        self._loop_time += passed if timeout is None else min(passed, max(timeout, 0.0) + _MAX_OVERRUN)
        return ready


class AcceleratedLoop(asyncio.SelectorEventLoop):
    """An event loop that waits ``speed`` times faster than real time."""

    def __init__(self, speed: float) -> None:
        self._accelerated = _AcceleratedSelector(speed)
        super().__init__(self._accelerated)

    def time(self) -> float:
        return self._accelerated.now()

    @contextmanager
    def real_time(self) -> Iterator[None]:
        """Run at normal speed while the block runs, to wait for a process that runs in real time."""
        speed, self._accelerated.speed = self._accelerated.speed, 1.0
        try:
            yield
        finally:
            self._accelerated.speed = speed


class DemoClock:
    """The time of day in the demo; it starts when it is created."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._loop = asyncio.get_running_loop()
        self._loop_start = self._loop.time()

    def __call__(self) -> datetime:
        return self._start + self.elapsed

    @property
    def elapsed(self) -> timedelta:
        return timedelta(seconds=self._loop.time() - self._loop_start)


def start_of_day(today: datetime) -> datetime:
    return today.astimezone(UTC).replace(hour=8, minute=0, second=0, microsecond=0)
