"""How much at once, and for how long."""

import asyncio
from datetime import timedelta

from prometheus_client import Gauge

from adapter.decoding.duration import parse_duration
from adapter.errors import BadRequest, DeadlineExceeded, TooManyRequests
from adapter.server.request_context import RequestContext

_LOOK_EVERY = 0.02


class ConcurrencyLimit:
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


class Deadlines:
    """All deadlines of a server, kept by one timer: a timer for each request would cost more than finding its rule."""

    def __init__(self) -> None:
        self._open: dict[Deadline, None] = {}
        self._looking = False

    def within(self, limit: timedelta, loop: asyncio.AbstractEventLoop) -> "Deadline":
        """Make a deadline for the block that is entered with it."""
        return Deadline(self, limit.total_seconds(), loop)

    def add(self, deadline: "Deadline", loop: asyncio.AbstractEventLoop) -> None:
        """Keep one more."""
        self._open[deadline] = None
        if not self._looking:
            self._looking = True
            loop.call_later(_LOOK_EVERY, self._look, loop)

    def remove(self, deadline: "Deadline") -> None:
        """Keep it no longer: its block was left."""
        self._open.pop(deadline, None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for deadline in [each for each in self._open if each.until <= now]:
            self.remove(deadline)
            deadline.cut_off()
        self._looking = bool(self._open)
        if self._looking:
            loop.call_later(_LOOK_EVERY, self._look, loop)


class Deadline:
    """Cuts off what is inside when its time is up, or a moment later, and says so."""

    __slots__ = ("_deadlines", "_late", "_limit", "_loop", "_task", "until")

    def __init__(self, deadlines: Deadlines, limit: float, loop: asyncio.AbstractEventLoop) -> None:
        self._deadlines, self._limit, self._loop = deadlines, limit, loop
        self._late = False

    def __enter__(self) -> None:
        task = asyncio.current_task(self._loop)
        if task is None:
            raise RuntimeError("a deadline is for a task")
        self._task, self.until = task, self._loop.time() + self._limit
        self._deadlines.add(self, self._loop)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._deadlines.remove(self)
        if self._late and self._task.uncancel() <= 0 and kind is asyncio.CancelledError:
            raise DeadlineExceeded(f"the answer was not ready within {self._limit:g}s")

    def cut_off(self) -> None:
        """Cancel what is inside."""
        self._late = True
        self._task.cancel()


def time_for(exchange: RequestContext, most: timedelta) -> timedelta:
    """Say how long an answer may take: our own limit, or less if the caller says ``timeout=``."""
    asked = exchange.query.get("timeout")
    if not asked:
        return most
    try:
        wanted = parse_duration(asked)
    except ValueError as error:
        raise BadRequest(f"timeout: {error}") from None
    return min(wanted, most) if wanted else most
