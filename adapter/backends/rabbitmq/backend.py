"""The RabbitMQ backend: reads one queue by name, or all matching queues page by page."""

from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urlencode

from adapter.backends.connection import http_errors
from adapter.backends.connection.http import HttpClient
from adapter.backends.connection.json_body import decode_body
from adapter.backends.parameters import parameters
from adapter.backends.rabbitmq.parse import COLUMNS, Queue, QueuePage, has_error, samples
from adapter.backends.rabbitmq.settings import ANY_VHOST, RabbitMq, RabbitMqParameters
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING_DEADLINE: Final = timedelta(seconds=5)
_NOT_FOUND: Final = "Object Not Found"
_PAGE_OUT_OF_RANGE: Final = "page_out_of_range"
_COUNT_MEASURES: Final = frozenset({"messages", "ready", "unacknowledged"})


class RabbitMqBackend:
    """A client of a RabbitMQ node; in a cluster, every node returns the queues of all nodes."""

    def __init__(self, name: str, settings: RabbitMq, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._client = HttpClient(settings, clock)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        wanted, now = parameters(query, RabbitMqParameters), self._clock()

        async def operation() -> tuple[RawSample, ...]:
            queues = await self._fetch_queue(wanted) if wanted.queue else await self._fetch_queues(wanted)
            return tuple(samples(queues, wanted.measure, now))

        return await self._client.run(query.text, deadline, operation, namespace=query.namespace)

    async def ping(self) -> None:
        """Request the name of the authenticated user."""
        await self._client.get("/api/whoami", _PING_DEADLINE)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _fetch_queue(self, wanted: RabbitMqParameters) -> list[Queue]:
        target = f"/api/queues/{_encode(wanted.vhost)}/{_encode(wanted.queue)}?columns={COLUMNS}"
        response = await self._client.request("GET", target, accept={HTTPStatus.NOT_FOUND})
        if response.status == HTTPStatus.OK:
            return [decode_body(response.body, Queue, "RabbitMQ")]
        if has_error(_NOT_FOUND, response.body):
            return []
        raise http_errors.from_status(response.status, response.body)

    async def _fetch_queues(self, wanted: RabbitMqParameters) -> list[Queue]:
        vhost = "" if wanted.vhost == ANY_VHOST else f"/{_encode(wanted.vhost)}"
        queues: list[Queue] = []
        number = pages = 1
        while number <= pages:
            target = f"/api/queues{vhost}?{self._page_query(wanted, number)}"
            response = await self._client.request("GET", target, accept={HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST})
            if response.status != HTTPStatus.OK:
                if has_error(_NOT_FOUND, response.body) or has_error(_PAGE_OUT_OF_RANGE, response.body):
                    break  # the vhost does not exist, or queues were deleted since the previous page was read
                raise http_errors.from_status(response.status, response.body)
            page = decode_body(response.body, QueuePage, "RabbitMQ")
            queues += page.items
            number, pages = number + 1, page.page_count
        return queues

    def _page_query(self, wanted: RabbitMqParameters, number: int) -> str:
        query = {
            "page": number,
            "page_size": self._settings.page_size,
            "name": f"^(?:{wanted.queues})$",
            "use_regex": "true",
            "columns": COLUMNS,
        }
        if wanted.measure in _COUNT_MEASURES:  # counts are cheap for RabbitMQ, rates are expensive
            query |= {"disable_stats": "true", "enable_queue_totals": "true"}
        return urlencode(query)


def _encode(name: str) -> str:
    return quote(name, safe="")
