"""Client of CloudWatch in one region: combines the queries of many rules into few GetMetricData requests."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from adapter.backends.cloudwatch.parse import samples_by_item
from adapter.backends.cloudwatch.query import (
    MAX_QUERIES,
    CloudWatchQuery,
    RequestItem,
    batch_key,
    metric_data_queries,
    rejected_positions,
    request_items,
    split_requests,
)
from adapter.backends.connection.aws.client import AwsClient
from adapter.backends.connection.secret_file import redacted_results
from adapter.backends.resilience.batching import Batch, Batcher
from adapter.backends.resilience.rate_limit import RateLimit
from adapter.errors import BackendError, BackendRejected
from adapter.sample import RawSample

_MAX_PAGES: Final = 100

Samples: TypeAlias = tuple[RawSample, ...]


class RegionClient:
    """Queries CloudWatch in one region."""

    def __init__(self, region: str, client: AwsClient, rate_limit: RateLimit, clock: Callable[[], datetime]) -> None:
        self._region = region
        self._client = client
        self._rate_limit = rate_limit
        self._clock = clock
        self._batcher: Batcher[CloudWatchQuery, Samples] = Batcher(
            self._request,
            key=lambda query: query.text,
            max_queries=MAX_QUERIES,
            group_key=batch_key,
            rejected_positions=rejected_positions,
        )

    async def query(self, query: CloudWatchQuery, deadline: timedelta) -> Samples:
        """Return the samples of a query, which is sent together with others."""
        return await self._batcher.query(query, deadline)

    async def aclose(self) -> None:
        """End running requests."""
        await self._batcher.aclose()

    async def fetch(self, queries: Sequence[CloudWatchQuery]) -> Sequence[Samples | BackendError]:
        """Fetch queries with the same batch key; raise ``BadQuery`` if one is invalid: CloudWatch then rejects all."""
        results: list[Samples | BackendError] = []
        for items in split_requests(request_items(queries, self._clock())):
            results += samples_by_item(items, await self._fetch_pages(items))
        return results

    async def _request(self, batch: Batch[CloudWatchQuery]) -> Sequence[Samples | BackendError]:
        key = repr([query.text for query in batch.queries])
        results = await self._client.run(
            key, batch.time_left(), lambda: self.fetch(batch.queries), is_quarantined=batch.is_quarantined
        )
        return redacted_results(results, self._client.secrets)

    async def _fetch_pages(self, items: list[RequestItem]) -> list[dict[str, Any]]:
        request: dict[str, Any] = {
            "MetricDataQueries": [query for item in items for query in metric_data_queries(item)],
            "StartTime": items[0].time_range.start,
            "EndTime": items[0].time_range.end,
            "ScanBy": "TimestampDescending",
        }
        pages: list[dict[str, Any]] = []
        while len(pages) < _MAX_PAGES:
            async with self._rate_limit.slot():
                page = await self._client.request(self._region, "get_metric_data", **request)
            pages.append(page)
            if not page.get("NextToken"):
                return pages
            request["NextToken"] = page["NextToken"]
        raise BackendRejected(f"the result has more than {_MAX_PAGES} pages")
