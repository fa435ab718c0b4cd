"""The SQS backend: one queue, or all queues with a prefix, within one deadline."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from cachetools import LRUCache

from adapter.backends.connection.aws import errors
from adapter.backends.connection.aws.client import AwsClient
from adapter.backends.parameters import parameters
from adapter.backends.resilience.rate_limit import RateLimit
from adapter.backends.sqs import parse
from adapter.backends.sqs.settings import Sqs, SqsParameters
from adapter.errors import BackendError, BackendRejected, BackendUnauthorized
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING_TIMEOUT: Final = timedelta(seconds=5)
_PAGE_SIZE: Final = 1000  # the maximum; without MaxResults SQS returns only the first page
_MAX_PAGES: Final = 100
_MAX_CACHED_URLS: Final = 10_000
_QUEUE_NOT_FOUND: Final = ("NonExistentQueue", "QueueDoesNotExist")


class SqsBackend:
    """A client of SQS in any number of regions."""

    def __init__(self, name: str, settings: Sqs, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._clock = clock
        self._client = AwsClient("sqs", settings, clock)
        self._rate_limit = RateLimit(max_concurrent=settings.max_connections)
        self._urls: LRUCache[tuple[str, str, str], str] = LRUCache(_MAX_CACHED_URLS)
        """Cached queue URLs by region, account and name."""

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return a series for each queue; a queue that does not exist has none."""
        selection, now = parameters(query, SqsParameters), self._clock()

        async def fetch_queues() -> tuple[RawSample, ...]:
            urls = await self._list_urls(selection) if selection.prefix else await self._queue_url(selection)
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(self._fetch_queue(selection, url, now, query.namespace)) for url in urls]
            except BaseExceptionGroup as failures:
                raise failures.exceptions[0] from None  # the task group cancelled the other tasks because of it
            return tuple(sample for task in tasks for sample in task.result())

        return await self._client.run(query.text, deadline, fetch_queues, namespace=query.namespace)

    async def ping(self) -> None:
        """List queues; a denied permission also proves that SQS responds and accepts the credentials."""

        async def list_queues() -> None:
            await self._client.request("", "list_queues", MaxResults=1, QueueNamePrefix="steadyscale")

        try:
            await self._client.run("ping", _PING_TIMEOUT, list_queues)
        except BackendUnauthorized as error:
            if errors.is_authentication_failure(error):
                raise

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _fetch_queue(self, selection: SqsParameters, url: str, now: datetime, namespace: str) -> list[RawSample]:
        """Read the attributes of one queue, which may have been deleted since it was listed."""
        attributes = [parse.ATTRIBUTES[name] for name in selection.measure]
        async with self._rate_limit.slot(namespace):
            response = await self._request(selection, "get_queue_attributes", QueueUrl=url, AttributeNames=attributes)
        if response is None:
            self._urls.pop(_cache_key(selection), None)
            return []
        return [parse.sample(url, response, selection.measure, now)]

    async def _queue_url(self, selection: SqsParameters) -> list[str]:
        if selection.is_url:
            return [selection.queue]
        key = _cache_key(selection)
        if key not in self._urls:
            owner = {"QueueOwnerAWSAccountId": selection.account_id} if selection.account_id else {}
            response = await self._request(selection, "get_queue_url", QueueName=selection.queue, **owner)
            if response is None:
                return []
            self._urls[key] = parse.queue_url(response)
        return [self._urls[key]]

    async def _list_urls(self, selection: SqsParameters) -> list[str]:
        request: dict[str, Any] = {"QueueNamePrefix": selection.prefix, "MaxResults": _PAGE_SIZE}
        urls: list[str] = []
        for _ in range(_MAX_PAGES):
            page = await self._client.request(selection.effective_region, "list_queues", **request)
            urls += parse.queue_urls(page)
            if not page.get("NextToken"):
                return list(dict.fromkeys(urls))
            request["NextToken"] = page["NextToken"]
        raise BackendRejected(f"the result has more than {_MAX_PAGES} pages")

    async def _request(self, selection: SqsParameters, operation: str, **request: Any) -> Any:  # noqa: ANN401 - botocore's
        """Return the response, or None if the queue does not exist."""
        try:
            return await self._client.request(selection.effective_region, operation, **request)
        except BackendError as error:
            if any(code in error.message for code in _QUEUE_NOT_FOUND):
                return None
            raise


def _cache_key(selection: SqsParameters) -> tuple[str, str, str]:
    return selection.effective_region, selection.account_id, selection.queue
