"""The Azure Monitor backend: combines the queries of all rules into few requests."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from adapter.backends.azure.client import AzureClient
from adapter.backends.azure.parse import samples_by_query
from adapter.backends.azure.query import AzureQuery, build_queries
from adapter.backends.azure.settings import Azure, AzureParameters
from adapter.backends.connection.secret_file import redacted_results
from adapter.backends.parameters import parameters
from adapter.backends.resilience.batching import Batch, Batcher
from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.backends.resilience.rate_limit import RateLimit
from adapter.errors import BackendError
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

Samples: TypeAlias = tuple[RawSample, ...]
_PING_TIMEOUT: Final = timedelta(seconds=5)
_MAX_RESOURCES: Final = 50
"""Azure's limit on resources in one request."""


class AzureBackend:
    """A client of Azure Monitor in one region."""

    aligned: Final = True

    def __init__(self, name: str, settings: Azure, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._clock = clock
        self._client = AzureClient(settings)
        self._protected = ProtectedCall(settings.circuit_breaker, clock, self._client.secrets)
        self._rate_limit = RateLimit(
            max_concurrent=settings.max_connections,
            min_interval=timedelta(seconds=1) / settings.max_requests_per_second,
        )
        # Azure rejects a request as a whole if one of its resources is invalid.
        self._batcher: Batcher[AzureQuery, Samples] = Batcher(
            self._request, key=repr, max_queries=_MAX_RESOURCES, group_key=lambda query: query.batch
        )

    async def fetch(self, query: Query, deadline: timedelta) -> Samples:
        """Return the newest value of each series of the rule's resources."""
        queries = build_queries(parameters(query, AzureParameters))
        results = await asyncio.gather(
            *(self._batcher.query(each, deadline) for each in queries), return_exceptions=True
        )
        samples: list[RawSample] = []
        for result in results:
            if isinstance(result, BaseException):
                raise result  # a partial result would be aggregated to a wrong value
            samples += result
        return tuple(samples)

    async def ping(self) -> None:
        """Request a token and any response."""
        await self._protected.run("ping", _PING_TIMEOUT, self._client.ping)

    async def aclose(self) -> None:
        """End running requests and close connections."""
        await self._protected.aclose()
        await self._batcher.aclose()
        await self._client.aclose()

    async def _request(self, batch: Batch[AzureQuery]) -> Sequence[Samples | BackendError]:
        async with self._rate_limit.slot():
            queries, now = batch.queries, self._clock()
            # Azure rejects duplicates: rules can differ and still query the same resource.
            resources = list({query.resource.lower(): query.resource for query in queries}.values())

            async def send() -> list[Samples | BackendError]:
                body = await self._client.post(queries[0].batch.target(now), {"resourceids": resources})
                return await asyncio.to_thread(samples_by_query, body, queries, now)

            results = await self._protected.run(
                repr(queries), batch.time_left(), send, is_quarantined=batch.is_quarantined
            )
            return redacted_results(results, self._client.secrets)
