"""The RabbitMQ backend: one queue by its name, or all that match, page after page under one deadline."""

from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urlencode

from adapter.backends.connection import http_errors
from adapter.backends.connection.http import HttpClient
from adapter.backends.parameters import parameters
from adapter.backends.rabbitmq.parse import COLUMNS, Page, Queue, decoded, is_refused_for, samples
from adapter.backends.rabbitmq.settings import ANY_VHOST, RabbitMq, RabbitMqParameters
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING: Final = timedelta(seconds=5)
_NO_SUCH_THING: Final = "Object Not Found"
_BEHIND_THE_LAST: Final = "page_out_of_range"
_COUNTS: Final = frozenset({"messages", "ready", "unacknowledged"})


class RabbitMqBackend:
    """A client of one RabbitMQ, or of a cluster of them: any node answers for all."""

    def __init__(self, name: str, settings: RabbitMq, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._client = HttpClient(settings, clock)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return a series for each queue that there is; of one that is not there, none."""
        asked, now = parameters(query, RabbitMqParameters), self._clock()

        async def ask() -> tuple[RawSample, ...]:
            queues = await self._one(asked) if asked.queue else await self._all(asked)
            return tuple(samples(queues, asked.reads, now))

        return await self._client.through(query.text, deadline, ask)

    async def ping(self) -> None:
        """Ask who we are."""
        await self._client.get("/api/whoami", _PING)

    async def aclose(self) -> None:
        """Let go of connections."""
        await self._client.aclose()

    async def _one(self, asked: RabbitMqParameters) -> list[Queue]:
        target = f"/api/queues/{_encoded(asked.vhost)}/{_encoded(asked.queue)}?columns={COLUMNS}"
        answer = await self._client.request("GET", target, accept={HTTPStatus.NOT_FOUND})
        if answer.status == HTTPStatus.OK:
            return [decoded(answer.body, Queue)]
        if is_refused_for(_NO_SUCH_THING, answer.body):
            return []
        raise http_errors.of_status(answer.status, answer.body)

    async def _all(self, asked: RabbitMqParameters) -> list[Queue]:
        where = "" if asked.vhost == ANY_VHOST else f"/{_encoded(asked.vhost)}"
        found: list[Queue] = []
        number = pages = 1
        while number <= pages:
            target = f"/api/queues{where}?{self._page(asked, number)}"
            answer = await self._client.request("GET", target, accept={HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST})
            if answer.status != HTTPStatus.OK:
                if is_refused_for(_NO_SUCH_THING, answer.body) or is_refused_for(_BEHIND_THE_LAST, answer.body):
                    break  # there is no such vhost; or there were more queues when the page before was read
                raise http_errors.of_status(answer.status, answer.body)
            page = decoded(answer.body, Page)
            found += page.items
            number, pages = number + 1, page.page_count
        return found

    def _page(self, asked: RabbitMqParameters, number: int) -> str:
        wanted = {
            "page": number,
            "page_size": self._settings.page_size,
            "name": f"^(?:{asked.queues})$",
            "use_regex": "true",
            "columns": COLUMNS,
        }
        if asked.reads in _COUNTS:  # counts alone cost RabbitMQ little, what passed through each queue a lot
            wanted |= {"disable_stats": "true", "enable_queue_totals": "true"}
        return urlencode(wanted)


def _encoded(name: str) -> str:
    return quote(name, safe="")
