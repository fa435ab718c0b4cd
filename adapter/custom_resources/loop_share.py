"""Cooperation of long computations with the event loop."""

import asyncio
from time import perf_counter
from typing import Final

_SLICE_SECONDS: Final = 0.005


class LoopShare:
    """Keeps a computation of many short steps below half of the time of the event loop, in slices of a few ms.

    Tenants cause such computations by changing their objects. Without a limit, the loop would serve nothing else.
    """

    def __init__(self) -> None:
        self._started = perf_counter()

    def start(self) -> None:
        """Begin a slice, after waiting for something else."""
        self._started = perf_counter()

    async def step(self) -> None:
        """End a step of the computation; if the slice is used up, leave the loop to others for the same time."""
        elapsed = perf_counter() - self._started
        if elapsed >= _SLICE_SECONDS:
            await asyncio.sleep(elapsed)
            self.start()
