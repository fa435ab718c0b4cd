"""The Datadog backend: sends the queries of many rules in one request."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final

from adapter.backends.connection.http import HttpClient
from adapter.backends.connection.secret_file import SecretFile
from adapter.backends.connection.shared_limits import parse_in_thread
from adapter.backends.datadog.rate_limit_headers import RateLimitStatus
from adapter.backends.datadog.settings import Datadog, DatadogParameters
from adapter.backends.datadog.timeseries import Samples, build_request, samples_by_query
from adapter.backends.parameters import parameters
from adapter.backends.resilience.batching import Batch, Batcher
from adapter.backends.resilience.rate_limit import RateLimit
from adapter.errors import BackendBusy
from adapter.rules.query_builder import Query

_PING_TIMEOUT: Final = timedelta(seconds=5)
_RATE_LIMIT_EXCEEDED: Final = "Datadog rate limit exceeded"


class DatadogBackend:
    """A client of one Datadog organization."""

    aligned: Final = True

    def __init__(self, name: str, settings: Datadog, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._clock = clock
        self._api_key = SecretFile(settings.api_key_file, "apiKeyFile")
        self._application_key = SecretFile(settings.application_key_file, "applicationKeyFile")
        self._client = HttpClient(settings.http, clock, (self._api_key, self._application_key))
        self._rate_limit_status = RateLimitStatus()
        self._rate_limit = RateLimit(
            max_concurrent=settings.max_connections, min_interval=settings.min_request_interval
        )
        self._batcher: Batcher[DatadogParameters, Samples] = Batcher(
            self._request,
            key=repr,
            max_queries=settings.max_queries_per_request,
            group_key=lambda query: query.window,
        )

    async def fetch(self, query: Query, deadline: timedelta) -> Samples:
        """Return the newest point of each series."""
        return await self._batcher.query(parameters(query, DatadogParameters), deadline, query.namespace)

    async def ping(self) -> None:
        """Validate the API key."""

        async def validate() -> None:
            key = await self._api_key.read()
            await self._client.request("GET", "/api/v1/validate", headers={"DD-API-KEY": key})

        await self._client.run("ping", _PING_TIMEOUT, validate)

    async def aclose(self) -> None:
        await self._batcher.aclose()
        await self._client.aclose()

    async def _request(self, batch: Batch[DatadogParameters]) -> Sequence[Samples]:
        async with self._rate_limit.slot(batch.namespace):
            queries, now = batch.queries, self._clock()

            async def request() -> list[Samples]:
                body = await self._post(build_request(queries, now))
                return await parse_in_thread(samples_by_query, body, queries, now)

            return await self._client.run(
                repr(queries),
                batch.time_left(),
                request,
                namespace=batch.namespace,
                is_quarantined=batch.is_quarantined,
            )

    async def _post(self, document: object) -> bytes:
        """Send a timeseries request, unless the rate limit is exhausted."""
        loop = asyncio.get_running_loop()
        if exhausted := self._rate_limit_status.exhausted(loop.time()):
            raise BackendBusy(_RATE_LIMIT_EXCEEDED, detail=exhausted)
        headers = {
            "DD-API-KEY": await self._api_key.read(),
            "DD-APPLICATION-KEY": await self._application_key.read(),
        }
        response = await self._client.request(
            "POST", "/api/v2/query/timeseries", accept={HTTPStatus.TOO_MANY_REQUESTS}, headers=headers, json=document
        )
        self._rate_limit_status.update(response.status, response.headers, loop.time())
        if response.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise BackendBusy(_RATE_LIMIT_EXCEEDED, detail=response.body[:200].decode("utf-8", "replace"))
        return response.body
