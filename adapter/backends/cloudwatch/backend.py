"""The CloudWatch backend: combines the queries of many rules into few GetMetricData requests, in each region."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from adapter.backends.cloudwatch.parse import Samples, samples_by_item
from adapter.backends.cloudwatch.query import (
    MAX_QUERIES,
    RequestItem,
    batch_key,
    metric_data_queries,
    rejected_positions,
    request_items,
    split_requests,
)
from adapter.backends.cloudwatch.settings import CloudWatch, CloudWatchParameters
from adapter.backends.connection.aws.client import AwsClient
from adapter.backends.connection.secret_file import redacted_results
from adapter.backends.parameters import parameters
from adapter.backends.resilience.batching import Batch, Batcher
from adapter.backends.resilience.rate_limit import OPERATOR, RateLimit
from adapter.errors import BackendError, BackendRejected
from adapter.rules.query_builder import Query

_PING_TIMEOUT: Final = timedelta(seconds=5)
_PING: Final = CloudWatchParameters(namespace="Steadyscale", metric="Ping", statistic="SampleCount")
_MAX_PAGES: Final = 100


class CloudWatchBackend:
    """A client of CloudWatch with one identity, in any number of regions."""

    aligned: Final = True

    def __init__(self, name: str, settings: CloudWatch, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._clock = clock
        self._client = AwsClient("cloudwatch", settings, clock)
        self._rate_limits: dict[str, RateLimit] = defaultdict(
            lambda: RateLimit(
                max_concurrent=settings.max_connections,
                min_interval=timedelta(seconds=1) / settings.max_requests_per_second,
            )
        )
        """By region."""

        self._batcher: Batcher[CloudWatchParameters, Samples] = Batcher(
            self._request,
            key=repr,
            max_queries=MAX_QUERIES,
            group_key=batch_key,
            rejected_positions=rejected_positions,
        )

    async def fetch(self, query: Query, deadline: timedelta) -> Samples:
        """Return the newest value of each series of the rule."""
        return await self._batcher.query(parameters(query, CloudWatchParameters), deadline, query.namespace)

    async def ping(self) -> None:
        """Query a metric that does not exist."""

        async def fetch() -> None:
            (result,) = await self._fetch([_PING], OPERATOR)
            if isinstance(result, BackendError):
                raise result

        await self._client.run("ping", _PING_TIMEOUT, fetch)

    async def aclose(self) -> None:
        await self._batcher.aclose()
        await self._client.aclose()

    async def _request(self, batch: Batch[CloudWatchParameters]) -> Sequence[Samples | BackendError]:
        results = await self._client.run(
            repr(batch.queries),
            batch.time_left(),
            lambda: self._fetch(batch.queries, batch.namespace),
            namespace=batch.namespace,
            is_quarantined=batch.is_quarantined,
        )
        return redacted_results(results, self._client.secrets)

    async def _fetch(self, queries: Sequence[CloudWatchParameters], namespace: str) -> Sequence[Samples | BackendError]:
        """Fetch queries with the same batch key; raise ``BadQuery`` if one is invalid: CloudWatch then rejects all."""
        results: list[Samples | BackendError] = []
        for items in split_requests(request_items(queries, self._clock())):
            results += samples_by_item(items, await self._fetch_pages(items, namespace))
        return results

    async def _fetch_pages(self, items: list[RequestItem], namespace: str) -> list[dict[str, Any]]:
        region = items[0].parameters.region
        request: dict[str, Any] = {
            "MetricDataQueries": [query for item in items for query in metric_data_queries(item)],
            "StartTime": items[0].time_range.start,
            "EndTime": items[0].time_range.end,
            "ScanBy": "TimestampDescending",
        }
        pages: list[dict[str, Any]] = []
        while len(pages) < _MAX_PAGES:
            async with self._rate_limits[region].slot(namespace):
                page = await self._client.request(region, "get_metric_data", **request)
            pages.append(page)
            if not page.get("NextToken"):
                return pages
            request["NextToken"] = page["NextToken"]
        raise BackendRejected(f"the result has more than {_MAX_PAGES} pages")
