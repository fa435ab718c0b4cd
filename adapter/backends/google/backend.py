"""The Google backend: one question, one call; Google takes no two at once, so nothing is gained by waiting for more."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from adapter.backends.google import promql, time_series
from adapter.backends.google.client import GoogleClient
from adapter.backends.google.settings import Google, GoogleParameters
from adapter.backends.parameters import parameters
from adapter.backends.resilience.rate_limit import Pace
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

Found: TypeAlias = tuple[RawSample, ...]
_PING: Final = timedelta(seconds=5)


class GoogleBackend:
    """A client of Cloud Monitoring."""

    def __init__(self, name: str, settings: Google, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._pace = Pace(at_once=settings.connections, per_second=settings.calls_per_second)
        self._client = GoogleClient(settings, clock)

    async def fetch(self, query: Query, deadline: timedelta) -> Found:
        """Return the newest number of each series that the filter or the expression finds."""
        asked = parameters(query, GoogleParameters)
        return await self._client.through(query.text, deadline, lambda: self._ask(asked))

    async def ping(self) -> None:
        """Ask for something that costs nothing."""
        target = f"/v3/projects/{self._settings.project}/monitoredResourceDescriptors?pageSize=1"
        await self._client.through("ping", _PING, lambda: self._client.get(target))

    async def aclose(self) -> None:
        """End what is under way, then let go of connections."""
        await self._client.aclose()

    async def _ask(self, asked: GoogleParameters) -> Found:
        async with self._pace.turn():
            return await self._answer(asked)

    async def _answer(self, asked: GoogleParameters) -> Found:
        now, project = self._clock(), asked.project or self._settings.project
        if asked.promql:
            body = await self._client.get(promql.target(project, asked.promql, now))
            return await asyncio.to_thread(promql.samples, body, asked.max_series)
        target = time_series.target(asked, project, self._settings.page_size, now)
        series = await self._client.series(target, asked.max_series)
        return await asyncio.to_thread(time_series.samples, series, now)
