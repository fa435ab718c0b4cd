"""How much at once, and for how long."""

import asyncio
from datetime import timedelta

from prometheus_client import Gauge

from adapter.api.exchange import Exchange
from adapter.duration import parse_duration
from adapter.errors import BadRequest, DeadlineExceeded, TooManyRequests


class Turnstile:
    """Lets so many requests be answered at once, and refuses the next: waiting in a queue would only make all late."""

    def __init__(self, most: int, gauge: Gauge) -> None:
        self._most = most
        self._inside = 0
        gauge.set_function(lambda: self._inside)

    def __enter__(self) -> None:
        if self._inside >= self._most:
            raise TooManyRequests
        self._inside += 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1


class Deadline:
    """Cuts off what is inside when its time is up, and says so. It costs a third of asyncio's own, on every request."""

    __slots__ = ("_late", "_limit", "_task", "_timer")

    def __init__(self, limit: timedelta) -> None:
        self._limit = limit
        self._late = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline is for a task")
        self._task = task
        self._timer = task.get_loop().call_later(self._limit.total_seconds(), self._cut_off)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._timer.cancel()
        if self._late and self._task.uncancel() <= 0 and kind is asyncio.CancelledError:
            raise DeadlineExceeded(f"the answer was not ready within {self._limit.total_seconds():g}s")

    def _cut_off(self) -> None:
        self._late = True
        self._task.cancel()


def time_for(exchange: Exchange, most: timedelta) -> timedelta:
    """Say how long an answer may take: our own limit, or less if the caller says ``timeout=``."""
    asked = exchange.query.get("timeout")
    if not asked:
        return most
    try:
        wanted = parse_duration(asked)
    except ValueError as error:
        raise BadRequest(f"timeout: {error}") from None
    return min(wanted, most) if wanted else most
