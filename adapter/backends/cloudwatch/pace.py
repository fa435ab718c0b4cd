"""Not more often than so many times a second."""

import asyncio


class Pace:
    """Lets callers go one after another, evenly."""

    def __init__(self, per_second: int) -> None:
        self._gap = 1 / per_second
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for a turn."""
        now = asyncio.get_running_loop().time()
        mine = max(self._next, now)
        self._next = mine + self._gap
        await asyncio.sleep(mine - now)
