"""The New Relic backend: sends the queries of many rules in one NerdGraph request."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from adapter.backends.connection.http import HttpClient
from adapter.backends.connection.secret_file import SecretFile, redacted_results
from adapter.backends.connection.shared_limits import parse_in_thread
from adapter.backends.newrelic.nerdgraph import PING, Samples, build_request, samples_by_query
from adapter.backends.newrelic.settings import NewRelic, NewRelicParameters
from adapter.backends.parameters import parameters
from adapter.backends.resilience.batching import Batch, Batcher
from adapter.backends.resilience.rate_limit import RateLimit
from adapter.errors import BackendError
from adapter.rules.query_builder import Query

_PING_TIMEOUT: Final = timedelta(seconds=5)


class NewRelicBackend:
    """A client of NerdGraph."""

    aligned: Final = True

    def __init__(self, name: str, settings: NewRelic, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._account = settings.account
        self._clock = clock
        self._key = SecretFile(settings.api_key_file, "apiKeyFile")
        self._client = HttpClient(settings.http, clock, (self._key,))
        self._rate_limit = RateLimit(
            max_concurrent=settings.max_connections, min_interval=settings.min_request_interval
        )
        self._batcher: Batcher[NewRelicParameters, Samples] = Batcher(
            self._request, key=repr, max_queries=settings.max_queries_per_request
        )

    async def fetch(self, query: Query, deadline: timedelta) -> Samples:
        """Return a series for each row of the result."""
        return await self._batcher.query(parameters(query, NewRelicParameters), deadline, query.namespace)

    async def ping(self) -> None:
        """Query the user of the API key."""

        async def query_user() -> None:
            samples_by_query(await self._post(PING), (), self._clock())

        await self._client.run("ping", _PING_TIMEOUT, query_user)

    async def aclose(self) -> None:
        await self._batcher.aclose()
        await self._client.aclose()

    async def _request(self, batch: Batch[NewRelicParameters]) -> Sequence[Samples | BackendError]:
        async with self._rate_limit.slot(batch.namespace):
            queries, now, time_left = batch.queries, self._clock(), batch.time_left()

            async def query() -> list[Samples | BackendError]:
                body = await self._post(build_request(queries, self._account, time_left.total_seconds()))
                return await parse_in_thread(samples_by_query, body, queries, now)

            results = await self._client.run(
                repr(queries), time_left, query, namespace=batch.namespace, is_quarantined=batch.is_quarantined
            )
            return redacted_results(results, (self._key,))

    async def _post(self, document: object) -> bytes:
        headers = {"API-Key": await self._key.read()}
        return (await self._client.request("POST", "/graphql", headers=headers, json=document)).body
