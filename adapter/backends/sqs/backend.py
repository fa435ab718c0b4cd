"""The SQS backend: one queue, or all whose names begin alike, page after page under one deadline."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from adapter.backends.connection.aws import errors
from adapter.backends.connection.aws.client import AwsClient
from adapter.backends.parameters import parameters
from adapter.backends.sqs import parse
from adapter.backends.sqs.settings import Sqs, SqsParameters
from adapter.errors import BackendError, BackendRejected, BackendUnauthorized
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING: Final = timedelta(seconds=5)
_ON_A_PAGE: Final = 1000  # SQS gives no more, and no second page unless it is told how many
_MOST_PAGES: Final = 100
_REMEMBERED: Final = 10_000
_NO_SUCH_QUEUE: Final = ("NonExistentQueue", "QueueDoesNotExist")


class SqsBackend:
    """A client of SQS in whatever regions rules ask for."""

    def __init__(self, name: str, settings: Sqs, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._clock = clock
        self._client = AwsClient("sqs", settings, clock)
        self._at_once = asyncio.Semaphore(settings.connections)
        self._urls: dict[tuple[str, str, str], str] = {}

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return a series for each queue that there is; of one that is not there, none."""
        asked, now = parameters(query, SqsParameters), self._clock()

        async def ask() -> tuple[RawSample, ...]:
            urls = await self._listed(asked) if asked.prefix else await self._named(asked)
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(self._told(asked, url, now)) for url in urls]
            except BaseExceptionGroup as several:
                raise several.exceptions[0] from None  # the others were ended for its sake
            return tuple(sample for task in tasks for sample in task.result())

        return await self._client.through(query.text, deadline, ask)

    async def ping(self) -> None:
        """Ask for any queue; who may not list them is answered, too."""
        try:
            await self._client.through(
                "ping", _PING, lambda: self._client.call("", "list_queues", MaxResults=1, QueueNamePrefix="steadyscale")
            )
        except BackendUnauthorized as error:
            if errors.is_disbelief(error):
                raise

    async def aclose(self) -> None:
        """Let go of connections."""
        await self._client.aclose()

    async def _told(self, asked: SqsParameters, url: str, now: datetime) -> list[RawSample]:
        """Read one queue; it may be gone since it was listed."""
        wanted = [parse.ATTRIBUTES[each] for each in asked.reads]
        async with self._at_once:
            found = await self._unless_gone(asked, "get_queue_attributes", QueueUrl=url, AttributeNames=wanted)
        if found is None:
            self._urls.pop(_key(asked), None)
            return []
        return [parse.sample(url, found, asked.reads, now)]

    async def _named(self, asked: SqsParameters) -> list[str]:
        if asked.is_url:
            return [asked.queue]
        key = _key(asked)
        if key not in self._urls:
            owner = {"QueueOwnerAWSAccountId": asked.account_id} if asked.account_id else {}
            found = await self._unless_gone(asked, "get_queue_url", QueueName=asked.queue, **owner)
            if found is None:
                return []
            if len(self._urls) >= _REMEMBERED:
                self._urls.clear()
            self._urls[key] = parse.url(found)
        return [self._urls[key]]

    async def _listed(self, asked: SqsParameters) -> list[str]:
        request: dict[str, Any] = {"QueueNamePrefix": asked.prefix, "MaxResults": _ON_A_PAGE}
        found: list[str] = []
        for _ in range(_MOST_PAGES):
            page = await self._client.call(asked.place, "list_queues", **request)
            found += parse.urls(page)
            if not page.get("NextToken"):
                return list(dict.fromkeys(found))
            request["NextToken"] = page["NextToken"]
        raise BackendRejected("it answers with pages without end")

    async def _unless_gone(self, asked: SqsParameters, operation: str, **request: Any) -> Any:  # noqa: ANN401
        """Call; None if SQS says that there is no such queue."""
        try:
            return await self._client.call(asked.place, operation, **request)
        except BackendError as error:
            if any(word in error.message for word in _NO_SUCH_QUEUE):
                return None
            raise


def _key(asked: SqsParameters) -> tuple[str, str, str]:
    return asked.place, asked.account_id, asked.queue
