"""The HTTP backend: fetches one document per query."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from adapter.backends.connection.http import HttpClient
from adapter.backends.connection.shared_limits import parse_in_thread
from adapter.backends.http.parse import samples
from adapter.backends.http.settings import Http, HttpParameters
from adapter.backends.parameters import parameters
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING_DEADLINE: Final = timedelta(seconds=5)


class HttpBackend:
    """A client of one HTTP server."""

    def __init__(self, name: str, settings: Http, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._client = HttpClient(settings, clock)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        wanted, now = parameters(query, HttpParameters), self._clock()

        async def operation() -> tuple[RawSample, ...]:
            response = await self._client.request("GET", wanted.path)
            return await parse_in_thread(samples, response.body, wanted, now)

        return await self._client.run(query.text, deadline, operation, namespace=query.namespace)

    async def ping(self) -> None:
        """Fetch the document at ``pingPath``."""
        await self._client.get(self._settings.ping_path, _PING_DEADLINE)

    async def aclose(self) -> None:
        await self._client.aclose()
