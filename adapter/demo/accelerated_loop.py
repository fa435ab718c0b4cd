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


class _AcceleratedTime:
    def __init__(self, speed: float) -> None:
        self.speed = speed
        self._loop_time = self._real_time = time.monotonic()

    def now(self) -> float:
        """Return the loop time, in seconds; never behind real time."""
        return self._loop_time + time.monotonic() - self._real_time

    def start_waiting(self) -> None:
        self._loop_time = self.now()
        self._real_time = time.monotonic()

    def stop_waiting(self, requested: float | None) -> None:
        real_time = time.monotonic()
        passed = (real_time - self._real_time) * self.speed
        self._loop_time += passed if requested is None else min(passed, max(requested, 0.0) + _MAX_OVERRUN)
        self._real_time = real_time


class _Selector(selectors.DefaultSelector):
    def __init__(self, accelerated: _AcceleratedTime) -> None:
        super().__init__()
        self._time = accelerated

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        self._time.start_waiting()
        ready = super().select(None if timeout is None else timeout / self._time.speed)
        self._time.stop_waiting(timeout)
        return ready


class AcceleratedLoop(asyncio.SelectorEventLoop):
    """An event loop that waits ``speed`` times faster than real time."""

    def __init__(self, speed: float) -> None:
        self._time = _AcceleratedTime(speed)
        super().__init__(_Selector(self._time))

    def time(self) -> float:
        """Return the loop time."""
        return self._time.now()

    @contextmanager
    def real_time(self) -> Iterator[None]:
        """Run at normal speed while the block runs, to wait for a process that runs in real time."""
        speed, self._time.speed = self._time.speed, 1.0
        try:
            yield
        finally:
            self._time.speed = speed


class DemoClock:
    """The time of day in the demo; it starts when it is created."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._loop = asyncio.get_running_loop()
        self._loop_start = self._loop.time()

    def __call__(self) -> datetime:
        """Return the current time."""
        return self._start + self.elapsed

    @property
    def elapsed(self) -> timedelta:
        """The time since the start."""
        return timedelta(seconds=self._loop.time() - self._loop_start)


def start_of_day(today: datetime) -> datetime:
    """Return the time at which the demo starts."""
    return today.astimezone(UTC).replace(hour=8, minute=0, second=0, microsecond=0)
