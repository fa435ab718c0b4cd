"""The scenario of the demo: the order rate and the availability of the metrics backend over time, and its playback.

Nothing else is scripted; every replica count is a decision of the autoscaler.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta
from itertools import count
from random import Random
from typing import Final, NamedTuple, TypeAlias

from adapter.demo.accelerated_loop import DemoClock
from adapter.demo.fake_prometheus import FakePrometheus
from adapter.demo.narrator import Narrator
from adapter.demo.order_queue import OrderQueue
from adapter.demo.real_prometheus import RealPrometheus

MetricsBackend: TypeAlias = FakePrometheus | RealPrometheus


class Phase(NamedTuple):
    """A part of the scenario."""

    start: timedelta
    """Time since the start of the demo."""

    text: str
    orders_per_second: float
    backend_is_up: bool = True


def _minute(number: float) -> timedelta:
    return timedelta(minutes=number)


PHASES: Final = (
    Phase(_minute(0), "Quiet morning: 0.3 orders per second.", 0.3),
    Phase(_minute(2), "Rush: 6 orders per second.", 6),
    Phase(_minute(7), "The metrics backend goes down: the queue length is unknown.", 6, backend_is_up=False),
    Phase(_minute(8), "During the outage, orders increase to 11 per second.", 11, backend_is_up=False),
    Phase(_minute(13), "The metrics backend is up again.", 11),
    Phase(_minute(16), "The rush is over: 0.3 orders per second.", 0.3),
    Phase(_minute(21), "The shop closes: no orders.", 0),
    Phase(_minute(26), "The shop opens: 0.3 orders per second.", 0.3),
)
END: Final = _minute(29)

_QUEUE_REPORT_INTERVAL: Final = 60.0
_RANDOM_PHASE_LENGTH: Final = _minute(5)
_RANDOM_RATES: Final = (0.0, 0.3, 1.0, 3.0, 6.0)


def phase(index: int, random: Random) -> Phase:
    """Return a phase of the scenario; after the last one, phases with random order rates."""
    if index < len(PHASES):
        return PHASES[index]
    rate = random.choice(_RANDOM_RATES)
    start = END + _RANDOM_PHASE_LENGTH * (index - len(PHASES))
    return Phase(start, f"Random load: {rate:g} orders per second.", rate)


class Playback:
    """Plays the phases: sets the order rate, stops and starts the metrics backend, and announces each phase."""

    def __init__(self, clock: DemoClock, narrator: Narrator, random: Random) -> None:
        self.orders_per_second = 0.0
        self._clock = clock
        self._narrator = narrator
        self._random = random
        self._backend_is_up = True

    async def run(self, queue: OrderQueue, backend: MetricsBackend, stop: asyncio.Event, *, once: bool) -> None:
        """Play the scenario, then random phases until ``stop`` is set; with ``once``, only the scenario."""
        reports = asyncio.create_task(self._report_queue(queue), name="queue reports")
        try:
            for index in count():
                if index == len(PHASES) and once:
                    await self._sleep_until(END, stop)
                    return
                current = phase(index, self._random)
                if await self._sleep_until(current.start, stop):
                    return
                self.orders_per_second = current.orders_per_second
                self._narrator.announce(current.text)
                if current.backend_is_up != self._backend_is_up:
                    self._backend_is_up = current.backend_is_up
                    await (backend.start() if current.backend_is_up else backend.stop())
        finally:
            reports.cancel()

    async def _sleep_until(self, time: timedelta, stop: asyncio.Event) -> bool:
        """Sleep until a time of the scenario; return whether ``stop`` was set."""
        with suppress(TimeoutError):
            async with asyncio.timeout((time - self._clock.elapsed).total_seconds()):
                await stop.wait()
        return stop.is_set()

    async def _report_queue(self, queue: OrderQueue) -> None:
        await asyncio.sleep(_QUEUE_REPORT_INTERVAL / 2)  # not at the same time as the phases, which start on the minute
        while self._clock.elapsed < END:
            self._narrator.report_queue(queue.state, queue.consumers, is_measured=self._backend_is_up)
            await asyncio.sleep(_QUEUE_REPORT_INTERVAL)
