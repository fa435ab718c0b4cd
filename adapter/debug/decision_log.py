"""Keeps what the page shows of every autoscaler, and wakes whoever waits for news.

It is told of each decision where it is made (``autoscaler.ports.DecisionListener``), so it does little then: it keeps the
decision itself, which the controller keeps anyway, finds the state, and packs one point.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from adapter.debug.display_state import GRAVITY, Sign, signs_of
from adapter.debug.timeline import Timeline
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision

ROOM: Final = 64 * 1024 * 1024
"""Bytes for all timelines together: twenty thousand autoscalers of one metric keep the last hundred decisions that
changed anything, half an hour of the busiest kind."""

MOST: Final = 64 * 1024
"""Bytes for one timeline, however few there are: six hours of an autoscaler whose metric never rests."""


@dataclass(slots=True)
class Kept:
    """What is known of one autoscaler."""

    autoscaler: Autoscaler
    """As it was before its last decision."""

    decision: Decision
    signs: tuple[Sign, ...]
    """How it fares; the first is the gravest."""

    since: datetime
    """When it began to fare so."""

    timeline: Timeline = field(default_factory=Timeline)
    gravity: int = 0
    """How soon someone should look at it; the least comes first. Kept, since a list of many is sorted by it."""


class Shelf:
    """Everything that was decided here, by key."""

    def __init__(self, room: int = ROOM) -> None:
        self.version = 0
        """Grows with every piece of news."""

        self.leader: Callable[[], str] = str
        """Who decides, where that is known; for who finds nothing here."""

        self._kept: dict[str, Kept] = {}
        self._room = room
        self._waiting: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[tuple[str, Kept]]:
        return iter(self._kept.items())

    def get(self, key: str) -> Kept | None:
        """Find one autoscaler."""
        return self._kept.get(key)

    # --- what the controller tells -----------------------------------------------------------------------------------

    def decided(self, key: str, autoscaler: Autoscaler, decision: Decision) -> None:
        """Keep a decision."""
        signs, before = signs_of(decision), self._kept.get(key)
        is_new = before is None or before.autoscaler.metadata.uid != autoscaler.metadata.uid
        timeline = Timeline() if before is None or is_new else before.timeline
        goes_on = before is not None and not is_new and before.signs[0].state is signs[0].state
        since = before.since if before is not None and goes_on else decision.at
        kept = Kept(autoscaler, decision, signs, signs[0].since or since, timeline, GRAVITY[signs[0].state])
        self._kept[key] = kept
        timeline.add(decision, min(MOST, self._room // len(self._kept)))
        self._tell()

    def gone(self, key: str) -> None:
        """Forget one autoscaler."""
        self._kept.pop(key, None)
        self._tell()

    def dismissed(self) -> None:
        """Forget all of them."""
        self._kept.clear()
        self._tell()

    # --- who waits for it --------------------------------------------------------------------------------------------

    async def news(self, known: int, patience: float) -> None:
        """Wait until there is news since version ``known``, but no longer than ``patience`` seconds."""
        if self.version != known:
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await waiting
        finally:
            self._waiting.discard(waiting)

    def _tell(self) -> None:
        self.version += 1
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()
