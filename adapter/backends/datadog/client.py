"""Client of the Datadog API."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final, TypeAlias

import msgspec

from adapter.backends.connection.http import HttpClient
from adapter.backends.connection.secret_file import SecretFile
from adapter.backends.datadog.parse import samples_by_query
from adapter.backends.datadog.rate_limit_headers import RateLimitStatus
from adapter.backends.datadog.request import build_request
from adapter.backends.datadog.settings import Datadog, DatadogParameters
from adapter.backends.resilience.rate_limit import RateLimit
from adapter.errors import BackendBusy
from adapter.sample import RawSample

Samples: TypeAlias = tuple[RawSample, ...]
_RATE_LIMIT_EXCEEDED: Final = "Datadog rate limit exceeded"


class DatadogClient:
    """Sends requests to the API of one organization."""

    def __init__(self, settings: Datadog, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._api_key = SecretFile(settings.api_key_file, "apiKeyFile")
        self._application_key = SecretFile(settings.application_key_file, "applicationKeyFile")
        self._http = HttpClient(settings.http, clock, (self._api_key, self._application_key))
        self._rate_limit_status = RateLimitStatus()
        self._rate_limit = RateLimit(
            max_concurrent=settings.http.max_connections, min_interval=settings.min_request_interval
        )

    async def query_timeseries(
        self, batch: Sequence[DatadogParameters], deadline: timedelta, *, is_quarantined: bool
    ) -> list[Samples]:
        """Return the samples of each query; all queries have the same window."""
        async with self._rate_limit.slot():
            now = self._clock()
            body = msgspec.json.encode(build_request(batch, now))

            async def request() -> list[Samples]:
                response = await self._post(body)
                return await asyncio.to_thread(samples_by_query, response, batch, now)

            return await self._http.run(repr(batch), deadline, request, is_quarantined=is_quarantined)

    async def ping(self, deadline: timedelta) -> None:
        """Validate the API key."""

        async def validate() -> None:
            key = await self._api_key.read()
            await self._http.request("GET", "/api/v1/validate", headers={"DD-API-KEY": key})

        await self._http.run("ping", deadline, validate)

    async def aclose(self) -> None:
        """End running requests and close connections."""
        await self._http.aclose()

    async def _post(self, body: bytes) -> bytes:
        """Send a timeseries request, unless the rate limit is exhausted."""
        loop = asyncio.get_running_loop()
        if exhausted := self._rate_limit_status.exhausted(loop.time()):
            raise BackendBusy(_RATE_LIMIT_EXCEEDED, detail=exhausted)
        headers = {
            "Content-Type": "application/json",
            "DD-API-KEY": await self._api_key.read(),
            "DD-APPLICATION-KEY": await self._application_key.read(),
        }
        response = await self._http.request(
            "POST", "/api/v2/query/timeseries", accept={HTTPStatus.TOO_MANY_REQUESTS}, headers=headers, data=body
        )
        self._rate_limit_status.update(response.status, response.headers, loop.time())
        if response.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise BackendBusy(_RATE_LIMIT_EXCEEDED, detail=response.body[:200].decode("utf-8", "replace"))
        return response.body
