"""Plays the day: sets how many orders come, lets the metrics backend fail and return, and has it all told."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from itertools import count
from random import Random
from typing import Final, Protocol

from adapter.demo.accelerated_loop import DemoClock
from adapter.demo.narrator import Narrator
from adapter.demo.order_queue import Shop
from adapter.demo.story import DAY, ENDS, Scene, scene_after

_PULSE: Final = timedelta(minutes=1)


class Backend(Protocol):
    """A metrics backend that can fail."""

    @property
    def url(self) -> str:
        """Where it answers, when it does."""

    async def come_up(self) -> None:
        """Answer."""

    async def go_down(self) -> None:
        """Answer no more."""


class Director:
    """Lets the world do what the story says."""

    def __init__(self, clock: DemoClock, narrator: Narrator, chance: Random) -> None:
        self.rate = 0.0
        """Orders a second, now."""

        self._clock = clock
        self._narrator = narrator
        self._chance = chance
        self._is_up = True

    async def direct(self, shop: Shop, backend: Backend, stop: asyncio.Event, *, once: bool) -> None:
        """Play the day, and then ordinary days, until told to stop; only the day if it is to be played once."""
        telling = asyncio.create_task(self._tell(shop), name="pulse")
        try:
            for number in count():
                if number == len(DAY) and once:
                    await self._waited(ENDS, stop)
                    return
                scene = scene_after(number, self._chance)
                if await self._waited(scene.at, stop):
                    return
                await self._set(scene, backend)
        finally:
            telling.cancel()

    async def _waited(self, until: timedelta, stop: asyncio.Event) -> bool:
        """Wait for a time of the day; tell whether we were told to stop before it came."""
        with suppress(TimeoutError):
            async with asyncio.timeout((until - self._clock.elapsed).total_seconds()):
                await stop.wait()
        return stop.is_set()

    async def _set(self, scene: Scene, backend: Backend) -> None:
        self.rate = scene.rate
        self._narrator.announce(scene.says)
        if scene.backend_is_up != self._is_up:
            self._is_up = scene.backend_is_up
            await (backend.come_up() if scene.backend_is_up else backend.go_down())

    async def _tell(self, shop: Shop) -> None:
        await asyncio.sleep(_PULSE.total_seconds() / 2)  # between the scenes, which come on the minute
        while self._clock.elapsed < ENDS:
            self._narrator.pulse(shop.queue, shop.consumers, is_seen=self._is_up)
            await asyncio.sleep(_PULSE.total_seconds())
