"""The CloudWatch backend: one identity, any number of regions."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from adapter.backends.cloudwatch.client import RegionClient, Samples
from adapter.backends.cloudwatch.parameters import CloudWatchParameters
from adapter.backends.cloudwatch.query import CloudWatchQuery
from adapter.backends.cloudwatch.settings import CloudWatch
from adapter.backends.connection.aws.client import AwsClient
from adapter.backends.parameters import parameters
from adapter.backends.resilience.rate_limit import RateLimit
from adapter.errors import BackendError
from adapter.rules.query_builder import Query

_PING_TIMEOUT: Final = timedelta(seconds=5)
_PING: Final = CloudWatchQuery(
    "ping", CloudWatchParameters(namespace="Steadyscale", metric="Ping", statistic="SampleCount")
)


class CloudWatchBackend:
    """A client of CloudWatch."""

    aligned: Final = True

    def __init__(self, name: str, settings: CloudWatch, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._clock = clock
        self._settings = settings
        self._client = AwsClient("cloudwatch", settings, clock)
        self._regions: dict[str, RegionClient] = {}

    async def fetch(self, query: Query, deadline: timedelta) -> Samples:
        """Return the newest value of each series of the rule."""
        wanted = parameters(query, CloudWatchParameters)
        return await self._region(wanted.region).query(CloudWatchQuery(query.text, wanted), deadline)

    async def ping(self) -> None:
        """Query a metric that does not exist."""

        async def fetch() -> None:
            (result,) = await self._region("").fetch([_PING])
            if isinstance(result, BackendError):
                raise result

        await self._client.run("ping", _PING_TIMEOUT, fetch)

    async def aclose(self) -> None:
        """End running requests and close connections."""
        regions, self._regions = tuple(self._regions.values()), {}
        await asyncio.gather(*(region.aclose() for region in regions))
        await self._client.aclose()

    def _region(self, region: str) -> RegionClient:
        if region not in self._regions:
            rate_limit = RateLimit(
                max_concurrent=self._settings.max_connections,
                min_interval=timedelta(seconds=1) / self._settings.max_requests_per_second,
            )
            self._regions[region] = RegionClient(region, self._client, rate_limit, self._clock)
        return self._regions[region]
