"""The Google Cloud Monitoring backend. The API accepts one query per request, so that queries are not batched."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from adapter.backends.google import promql, time_series
from adapter.backends.google.client import GoogleClient
from adapter.backends.google.settings import Google, GoogleParameters
from adapter.backends.parameters import parameters
from adapter.backends.resilience.rate_limit import RateLimit
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING_TIMEOUT: Final = timedelta(seconds=5)


class GoogleBackend:
    """A client of Cloud Monitoring."""

    def __init__(self, name: str, settings: Google, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._rate_limit = RateLimit(
            max_concurrent=settings.max_connections,
            min_interval=timedelta(seconds=1) / settings.max_requests_per_second,
        )
        self._client = GoogleClient(settings, clock)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return the newest value of each series of the filter or the PromQL query."""
        wanted = parameters(query, GoogleParameters)
        return await self._client.run(query.text, deadline, lambda: self._fetch(wanted))

    async def ping(self) -> None:
        """Send a request that is free of charge."""
        target = f"/v3/projects/{self._settings.project}/monitoredResourceDescriptors?pageSize=1"
        await self._client.run("ping", _PING_TIMEOUT, lambda: self._client.get(target))

    async def aclose(self) -> None:
        """End running requests and close connections."""
        await self._client.aclose()

    async def _fetch(self, wanted: GoogleParameters) -> tuple[RawSample, ...]:
        async with self._rate_limit.slot():
            now, project = self._clock(), wanted.project or self._settings.project
            if wanted.promql:
                body = await self._client.get(promql.target(project, wanted.promql, now))
                return await asyncio.to_thread(promql.samples, body, wanted.max_series)
            target = time_series.target(wanted, project, self._settings.page_size, now)
            series = await self._client.list_time_series(target, wanted.max_series)
            return await asyncio.to_thread(time_series.samples, series, now)
