"""Time that runs fast: an event loop in which a second of waiting is over sooner, for everything that waits in it.

Sleeps, deadlines and timestamps all come from the loop's own time, so nothing else need know. While somebody works,
time passes as it does for everyone; only waiting is shortened. So a busy machine makes the day longer, and does not
make a deadline pass that would not have passed.
"""

import asyncio
import selectors
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from selectors import SelectorKey
from typing import Final

_LATE: Final = 1.0
"""Seconds by which a wait may end late. More is the machine's fault, and no time has passed for anyone."""


class Pace:
    """How far the loop's time has come."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self._here = self._there = time.monotonic()

    def time(self) -> float:
        """Tell the loop's time, in seconds; never behind the world's, as both began together."""
        return self._here + time.monotonic() - self._there

    def began_waiting(self) -> None:
        """Note that from now on nobody works."""
        self._here = self.time()
        self._there = time.monotonic()

    def waited(self, at_most: float | None) -> None:
        """Note that somebody works again; little more time has passed than was asked for, however late we are."""
        now = time.monotonic()
        passed = (now - self._there) * self.speed
        self._here += passed if at_most is None else min(passed, max(at_most, 0.0) + _LATE)
        self._there = now


class _Selector(selectors.DefaultSelector):
    """Waits for less than it is asked to."""

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        self._pace.began_waiting()
        ready = super().select(None if timeout is None else timeout / self._pace.speed)
        self._pace.waited(timeout)
        return ready


class PacedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time runs `speed` times as fast as the world's, as long as it has nothing to do."""

    def __init__(self, speed: float) -> None:
        self._pace = Pace(speed)
        super().__init__(_Selector(self._pace))

    def time(self) -> float:
        """Tell the loop's time."""
        return self._pace.time()

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """Let time run as it does for everyone, while a process of the world is waited for that knows no other."""
        speed, self._pace.speed = self._pace.speed, 1.0
        try:
            yield
        finally:
            self._pace.speed = speed


class DemoClock:
    """Tells the time of day in the demonstration, by the loop it is made in."""

    def __init__(self, beginning: datetime) -> None:
        self.beginning: Final = beginning
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()

    def __call__(self) -> datetime:
        """Tell the time."""
        return self.beginning + self.elapsed

    @property
    def elapsed(self) -> timedelta:
        """How much of the day is over."""
        return timedelta(seconds=self._loop.time() - self._began)


def morning(today: datetime) -> datetime:
    """Say when the day of the demonstration begins."""
    return today.astimezone(UTC).replace(hour=8, minute=0, second=0, microsecond=0)
