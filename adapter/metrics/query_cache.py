"""Answers to queries that have a selector inside: remembered for the rule's interval, one fetch of a query at a time.

There may be as many of these queries as there are selectors, and anyone can make up selectors. So their number is
bounded, and none is fetched unless someone asks.
"""

import asyncio
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Final

from cachetools import TLRUCache

from adapter.metrics.fetcher import Failed, Fetcher, Outcome
from adapter.rules.query_builder import Query

_MOST: Final = 10_000
_LONGEST: Final = 8192
"""Characters of a query whose answer is remembered: none that people write is longer."""

_FAILED_FOR: Final = 1.0
"""A failure is believed briefly: long enough that a crowd asks once, short enough that it is over when it is over."""


class QueryCache:
    """Outcomes by query."""

    def __init__(self, fetcher: Fetcher, size: int = _MOST, timer: Callable[[], float] | None = None) -> None:
        self._fetcher = fetcher
        self._outcomes: TLRUCache[Hashable, tuple[Outcome, float]] = TLRUCache(
            size, ttu=_expiry, timer=timer or _loop_time
        )
        self._asking: dict[Hashable, asyncio.Task[Outcome]] = {}
        self.watch: Callable[[bool], None] = lambda _is_known: None
        """Told of each read: whether the answer was at hand."""

    async def get(self, query: Query, interval: timedelta, deadline: timedelta) -> Outcome:
        """Say what the query finds, as of at most an interval ago."""
        known = self._outcomes.get(query.key)
        self.watch(known is not None)
        if known is not None:
            return known[0]
        asking = self._asking.get(query.key)
        if asking is None:
            asking = asyncio.create_task(self._ask(query, interval, deadline), name=f"query {query.backend}")
            self._asking[query.key] = asking
            asking.add_done_callback(lambda _: self._asking.pop(query.key, None))
        return await asyncio.shield(asking)  # one impatient reader must not spoil it for the others

    def peek(self, query: Query) -> Outcome | None:
        """Say what is remembered."""
        known = self._outcomes.get(query.key)
        return None if known is None else known[0]

    async def aclose(self) -> None:
        """End what is under way."""
        asking = tuple(self._asking.values())
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _ask(self, query: Query, interval: timedelta, deadline: timedelta) -> Outcome:
        outcome = await self._fetcher.fetch(query, deadline)
        lifetime = interval.total_seconds()
        if len(query.text) <= _LONGEST:
            self._outcomes[query.key] = outcome, min(lifetime, _FAILED_FOR) if isinstance(outcome, Failed) else lifetime
        return outcome


def _expiry(_query: Hashable, remembered: tuple[Outcome, float], now: float) -> float:
    return now + remembered[1]


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
