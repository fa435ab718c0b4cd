"""A metric system that says what the test wants, when the test wants it, and counts who asks."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from adapter.rules.query_builder import Query
from adapter.sample import RawSample

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def loop_clock() -> datetime:
    """Tell the loop's time, which in a test passes at once."""
    return BEGINNING + timedelta(seconds=asyncio.get_running_loop().time())


@dataclass
class ScriptedBackend:
    """Answers each query with what ``rows`` has for its text, after ``takes`` seconds; or raises what is there."""

    name: str = "scripted"
    rows: dict[str, tuple[RawSample, ...] | Exception] = field(default_factory=dict)
    takes: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)
    at_once: Counter[str] = field(default_factory=Counter)
    """The most fetches of one query that were ever under way together."""

    closed: bool = False
    _under_way: Counter[str] = field(default_factory=Counter)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:  # noqa: ARG002
        self.asked[query.text] += 1
        self._under_way[query.text] += 1
        self.at_once[query.text] = max(self.at_once[query.text], self._under_way[query.text])
        try:
            await asyncio.sleep(self.takes)
        finally:
            self._under_way[query.text] -= 1
        found = self.rows.get(query.text, ())
        if isinstance(found, Exception):
            raise found
        return found

    async def ping(self) -> None:
        if any(isinstance(found, Exception) for found in self.rows.values()):
            raise next(found for found in self.rows.values() if isinstance(found, Exception))

    async def aclose(self) -> None:
        self.closed = True


def raw(value: float, at: datetime = BEGINNING, **labels: str) -> RawSample:
    return RawSample(value, at, labels)
