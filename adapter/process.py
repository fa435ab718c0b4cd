"""Process-wide helpers: clocks, signals, background tasks and the garbage collector."""

import asyncio
import gc
import logging
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from autoscaler.kube.connection import KubeConnection, suspend_aware_time
from autoscaler.kube.errors import Unavailable
from autoscaler.kube.metrics import KubeMetrics
from autoscaler.kube.server_time import server_time
from autoscaler.kube.tasks import Run, background_tasks
from autoscaler.ports import Clock

_MIN_JUMP: Final = timedelta(seconds=2)
"""A smaller difference is the resolution of the API server's time or the correction of a leap second."""

_CHECK_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 1.0
_KEEP_SECONDS: Final = 10.0

log = logging.getLogger(__name__)


def clock() -> datetime:
    """Return the current time; the only place that reads the system's wall clock."""
    return datetime.now(UTC)  # noqa: TID251


class ProcessClock:
    """The time of this process: the time at its start plus a steady clock. No jump of the wall clock changes it.

    A jump can also be a pause of the virtual machine that the steady clock did not count. The clock is then aligned
    again, and set forward if it is behind that of the API server.

    Every duration and timestamp of the service is based on it. It starts with the time of the wall clock, until it is
    aligned with the clock of the API server: the processes that follow each other as leader may run on machines whose
    wall clocks differ, and each continues from the timestamps of the one before.
    """

    def __init__(
        self,
        wall_clock: Clock = clock,
        steady: Callable[[], float] = suspend_aware_time,
        on_jump: Callable[[], None] = lambda: None,
    ) -> None:
        self._wall_clock = wall_clock
        self._steady = steady
        self._on_jump = on_jump
        self._start = wall_clock().timestamp() - steady()
        """The time at which the steady clock was 0, in seconds of Unix time."""

        self._known_offset = timedelta(0)
        self._next_check = 0.0
        self.is_aligned = False

    def __call__(self) -> datetime:
        seconds = self._steady()
        now = datetime.fromtimestamp(self._start + seconds, UTC)
        if seconds >= self._next_check:  # not each time: the clock is read in every read of a metric
            self._next_check = seconds + _CHECK_SECONDS
            self._check(now)
        return now

    def _check(self, now: datetime) -> None:
        """Log and count a jump of the wall clock."""
        jump = self._wall_clock() - now - self._known_offset
        if abs(jump) >= _MIN_JUMP:
            self._known_offset += jump
            self._on_jump()
            log.warning("wall clock jumped", extra={"seconds": round(jump.total_seconds(), 3)})

    def offset_seconds(self) -> float:
        """Return how far the wall clock is ahead of this clock."""
        return (self._wall_clock() - self()).total_seconds()

    def align(self, server_time: datetime) -> None:
        """Set the clock to the current time of the API server; a small difference is ignored.

        This is done once: the clock of the API server may jump together with the wall clock of this machine.
        """
        self.is_aligned = True
        error = self() - server_time
        if abs(error) >= _MIN_JUMP:
            self._start -= error.total_seconds()
            self._known_offset += error
            log.warning(
                "wall clock differs from that of the API server, which is used instead",
                extra={"seconds": round(error.total_seconds(), 3)},
            )


async def align_clock(clock: Clock, connection: KubeConnection, *, attempts: int) -> None:
    """Align a `ProcessClock` with that of the API server, unless it is aligned; leave other clocks unchanged."""
    for attempt in range(attempts):
        if not isinstance(clock, ProcessClock) or clock.is_aligned:
            return
        if attempt:
            await asyncio.sleep(_RETRY_SECONDS)
        try:
            time = await server_time(connection)
        except Unavailable as error:
            log.warning("time of the API server is unknown", extra={"error": str(error)})
        else:
            clock.align(time or clock())


async def keep_aligned(clock: Clock, connection: KubeConnection) -> None:
    """Align a `ProcessClock` as soon as the API server responds, and notice its jumps; run until cancelled."""
    while isinstance(clock, ProcessClock):
        clock()  # detects a jump
        await align_clock(clock, connection, attempts=1)
        await asyncio.sleep(_KEEP_SECONDS)


def stop_event() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def tune_garbage_collector() -> None:
    """Exclude everything that is loaded at startup from collections, and collect less often.

    Requests leave few reference cycles; with the default thresholds, collections take an eighth of the CPU time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@asynccontextmanager
async def running(tasks: Mapping[str, Run], metrics: KubeMetrics) -> AsyncIterator[Callable[[], None]]:
    """Run tasks by name while the context is open; yield a function that cancels them earlier.

    A task that fails unexpectedly is restarted, because one object or response must not end the process.
    """
    async with background_tasks(metrics) as start:
        started = [start(run, name) for name, run in tasks.items()]

        def cancel() -> None:
            for task in started:
                task.cancel()

        yield cancel
