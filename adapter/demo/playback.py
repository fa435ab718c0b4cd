"""Playback of the scenario: sets the order rate, stops and starts the metrics backend, and prints each phase."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from itertools import count
from random import Random
from typing import Final, TypeAlias

from adapter.demo.accelerated_loop import DemoClock
from adapter.demo.fake_prometheus import FakePrometheus
from adapter.demo.narrator import Narrator
from adapter.demo.order_queue import OrderQueue
from adapter.demo.real_prometheus import RealPrometheus
from adapter.demo.scenario import END, PHASES, phase

MetricsBackend: TypeAlias = FakePrometheus | RealPrometheus
_QUEUE_REPORT_INTERVAL: Final = timedelta(minutes=1)


class Playback:
    """Plays the phases of the scenario."""

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
        interval = _QUEUE_REPORT_INTERVAL.total_seconds()
        await asyncio.sleep(interval / 2)  # not at the same time as the phases, which start on the minute
        while self._clock.elapsed < END:
            self._narrator.report_queue(queue.state, queue.consumers, is_measured=self._backend_is_up)
            await asyncio.sleep(interval)
