"""The Azure Monitor backend: combines the queries of all rules into few requests."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final

from adapter.backends.azure.credentials import AzureCredential
from adapter.backends.azure.metrics_batch import Samples, batch_key, build_queries, samples_by_query, target
from adapter.backends.azure.settings import MAX_RESOURCES, Azure, AzureParameters
from adapter.backends.connection import http_errors
from adapter.backends.connection.http import HttpClient
from adapter.backends.connection.json_body import error_object
from adapter.backends.connection.secret_file import redacted_results
from adapter.backends.connection.shared_limits import parse_in_thread
from adapter.backends.parameters import parameters
from adapter.backends.resilience.batching import Batch, Batcher
from adapter.backends.resilience.rate_limit import RateLimit
from adapter.errors import BackendError, BadQuery
from adapter.rules.query_builder import Query

_PING_TIMEOUT: Final = timedelta(seconds=5)


class AzureBackend:
    """A client of Azure Monitor in one region."""

    aligned: Final = True

    def __init__(self, name: str, settings: Azure, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._clock = clock
        self._credential = AzureCredential(settings)
        self._client = HttpClient(settings.http, clock, self._credential.secrets)
        self._rate_limit = RateLimit(
            max_concurrent=settings.max_connections,
            min_interval=timedelta(seconds=1) / settings.max_requests_per_second,
        )
        # Azure rejects a request as a whole if one of its resources is invalid.
        self._batcher: Batcher[AzureParameters, Samples] = Batcher(
            self._request, key=repr, max_queries=MAX_RESOURCES, group_key=batch_key
        )

    async def fetch(self, query: Query, deadline: timedelta) -> Samples:
        """Return the newest value of each series of the rule's resources."""
        results = await asyncio.gather(
            *(
                self._batcher.query(resource_query, deadline, query.namespace)
                for resource_query in build_queries(parameters(query, AzureParameters))
            ),
            return_exceptions=True,
        )
        samples: Samples = ()
        for result in results:
            if isinstance(result, BaseException):
                raise result  # a partial result would be aggregated to a wrong value
            samples += result
        return samples

    async def ping(self) -> None:
        """Check that a token can be obtained and that the endpoint responds."""
        await self._client.run("ping", _PING_TIMEOUT, lambda: self._send("GET", "/"))

    async def aclose(self) -> None:
        await self._batcher.aclose()
        await self._client.aclose()
        await self._credential.aclose()

    async def _request(self, batch: Batch[AzureParameters]) -> Sequence[Samples | BackendError]:
        async with self._rate_limit.slot(batch.namespace):
            queries, now = batch.queries, self._clock()
            # Azure rejects duplicates: rules can differ and still query the same resource.
            resources = list({query.resource.lower(): query.resource for query in queries}.values())

            async def send() -> list[Samples | BackendError]:
                status, body = await self._send("POST", target(queries[0], now), json={"resourceids": resources})
                if status == HTTPStatus.NOT_FOUND and (error := error_object(body)):
                    detail = f"{error.get('code')}: {error.get('message')}"
                    raise BadQuery("resource not found: check resource", detail=detail[: http_errors.MAX_DETAIL])
                if status != HTTPStatus.OK:
                    raise http_errors.from_status(status, body)
                return await parse_in_thread(samples_by_query, body, queries, now)

            results = await self._client.run(
                repr(queries),
                batch.time_left(),
                send,
                namespace=batch.namespace,
                is_quarantined=batch.is_quarantined,
            )
            return redacted_results(results, self._credential.secrets)

    async def _send(self, method: str, path: str, **options: Any) -> tuple[int, bytes]:  # noqa: ANN401 - aiohttp's
        """Send a request with a token; return the response unless its status is 401 or a server error."""
        headers = {"Authorization": f"Bearer {await self._credential.token()}"}
        response = await self._client.request(method, path, accept=range(500), headers=headers, **options)
        if response.status == HTTPStatus.UNAUTHORIZED:
            self._credential.reset()
            raise http_errors.from_status(response.status, response.body)
        return response.status, response.body
