"""The Datadog backend: sends the queries of many rules in one request."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from adapter.backends.datadog.client import DatadogClient, Samples
from adapter.backends.datadog.settings import Datadog, DatadogParameters
from adapter.backends.parameters import parameters
from adapter.backends.resilience.batching import Batch, Batcher
from adapter.rules.query_builder import Query

_PING_TIMEOUT: Final = timedelta(seconds=5)


class DatadogQuery(NamedTuple):
    """The query of one rule."""

    text: str
    parameters: DatadogParameters


class DatadogBackend:
    """A client of one Datadog organization."""

    aligned: Final = True

    def __init__(self, name: str, settings: Datadog, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._client = DatadogClient(settings, clock)
        self._batcher: Batcher[DatadogQuery, Samples] = Batcher(
            self._request,
            key=lambda query: query.text,
            max_queries=settings.max_queries_per_request,
            group_key=lambda query: query.parameters.window,
        )

    async def fetch(self, query: Query, deadline: timedelta) -> Samples:
        """Return the newest point of each series."""
        return await self._batcher.query(DatadogQuery(query.text, parameters(query, DatadogParameters)), deadline)

    async def ping(self) -> None:
        """Validate the API key."""
        await self._client.ping(_PING_TIMEOUT)

    async def aclose(self) -> None:
        """End running requests and close connections."""
        await self._batcher.aclose()
        await self._client.aclose()

    async def _request(self, batch: Batch[DatadogQuery]) -> Sequence[Samples]:
        return await self._client.query_timeseries(
            [query.parameters for query in batch.queries], batch.time_left(), is_quarantined=batch.is_quarantined
        )
