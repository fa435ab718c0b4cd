"""A backend with scripted results and delays, which counts fetches."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from adapter.rules.query_builder import Query
from adapter.sample import RawSample

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def loop_clock() -> datetime:
    """Return the time of the event loop, which is virtual in tests with looptime."""
    return BEGINNING + timedelta(seconds=asyncio.get_running_loop().time())


@dataclass
class ScriptedBackend:
    """Returns, or raises, what ``results`` has for the text of a query, after ``delay`` seconds."""

    name: str = "scripted"
    results: dict[str, tuple[RawSample, ...] | Exception] = field(default_factory=dict)
    delay: float = 0.0
    fetches: Counter[str] = field(default_factory=Counter)
    max_concurrent: Counter[str] = field(default_factory=Counter)
    """The highest number of concurrent fetches of each query."""

    closed: bool = False
    _in_flight: Counter[str] = field(default_factory=Counter)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:  # noqa: ARG002
        self.fetches[query.text] += 1
        self._in_flight[query.text] += 1
        self.max_concurrent[query.text] = max(self.max_concurrent[query.text], self._in_flight[query.text])
        try:
            await asyncio.sleep(self.delay)
        finally:
            self._in_flight[query.text] -= 1
        result = self.results.get(query.text, ())
        if isinstance(result, Exception):
            raise result
        return result

    async def ping(self) -> None:
        for result in self.results.values():
            if isinstance(result, Exception):
                raise result

    async def aclose(self) -> None:
        self.closed = True


def raw(value: float, at: datetime = BEGINNING, /, **labels: str) -> RawSample:
    return RawSample(value, at, labels)
