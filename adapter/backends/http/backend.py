"""The HTTP backend: one document for each question."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from adapter.backends.connection.http import HttpClient
from adapter.backends.http.parse import samples
from adapter.backends.http.settings import Http, HttpParameters
from adapter.backends.parameters import parameters
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING: Final = timedelta(seconds=5)


class HttpBackend:
    """A client of one server."""

    def __init__(self, name: str, settings: Http, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._client = HttpClient(settings, clock)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return the series in the document that the rule names."""
        asked, now = parameters(query, HttpParameters), self._clock()

        async def ask() -> tuple[RawSample, ...]:
            answer = await self._client.request("GET", asked.path)
            # In a thread: a megabyte is too much work to hold up everyone else for.
            return await asyncio.to_thread(samples, answer.body, asked, now)

        return await self._client.through(query.text, deadline, ask)

    async def ping(self) -> None:
        """Ask for any document."""
        await self._client.get(self._settings.ping_path, _PING)

    async def aclose(self) -> None:
        """Let go of connections."""
        await self._client.aclose()
