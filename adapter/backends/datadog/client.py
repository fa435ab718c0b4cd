"""Datadog's library behind a wall: it makes the requests, and what goes over the wire is ours.

Its own transport keeps connections that nobody closes and cannot be given certificates, so it is not used.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from datadog_api_client import AsyncApiClient, Configuration
from datadog_api_client.v2.api.metrics_api import MetricsApi

from adapter.backends.connection.http import Answer, HttpClient
from adapter.backends.connection.secret_file import SecretFile
from adapter.backends.datadog.parse import samples
from adapter.backends.datadog.rate_limit_headers import Limits
from adapter.backends.datadog.request import request
from adapter.backends.datadog.settings import Datadog, DatadogParameters
from adapter.backends.resilience.rate_limit import Pace
from adapter.errors import BackendBusy
from adapter.sample import RawSample

_TOO_OFTEN: Final = "asked more often than Datadog allows"
_SENT: Final = ("Accept", "Content-Type", "User-Agent")


class Client:
    """Asks one organisation's API."""

    def __init__(self, settings: Datadog, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._api_key = SecretFile(settings.api_key_file, "apiKeyFile")
        self._application_key = SecretFile(settings.application_key_file, "applicationKeyFile")
        self._http = HttpClient(settings.http, clock, (self._api_key, self._application_key))
        self._limits = Limits()
        self._pace = Pace.apart(settings.pace, at_once=settings.http.connections)
        raw = Configuration(host="https://datadog", preload_content=False, enable_retry=False)  # type: ignore[no-untyped-call]
        self._metrics: Any = MetricsApi(_Library(raw, self.request))  # type: ignore[no-untyped-call]

    async def ask(self, asked: Sequence[DatadogParameters], ends: float) -> list[tuple[RawSample, ...]]:
        """Ask all of these, of one window, by one call that ends at this time of the loop."""
        async with self._pace.turn():
            return await self._ask(asked, ends)

    async def _ask(self, asked: Sequence[DatadogParameters], ends: float) -> list[tuple[RawSample, ...]]:
        loop, now = asyncio.get_running_loop(), self._clock()
        wanted = request(asked, asked[0].window, now)

        async def call() -> list[tuple[RawSample, ...]]:
            if spent := self._limits.spent(loop.time()):
                raise BackendBusy(_TOO_OFTEN, detail=spent)
            answer: Answer = await self._metrics.query_timeseries_data(body=wanted)
            return await asyncio.to_thread(samples, answer.body, asked, now)

        left = timedelta(seconds=max(0.0, ends - loop.time()))
        return await self._http.through(repr(asked), left, call)

    async def ping(self, deadline: timedelta) -> None:
        """See whether the API key is one."""

        async def call() -> None:
            key = await self._api_key.read()
            await self._http.request("GET", "/api/v1/validate", headers={"DD-API-KEY": key})

        await self._http.through("ping", deadline, call)

    async def request(self, method: str, path: str, headers: Mapping[str, str], body: object) -> Answer:
        """Send what the library made, with our keys; take note of limits."""
        keys = {
            "DD-API-KEY": await self._api_key.read(),
            "DD-APPLICATION-KEY": await self._application_key.read(),
        }
        answer = await self._http.request(
            method,
            path,
            accept={HTTPStatus.TOO_MANY_REQUESTS},
            headers={**{key: headers[key] for key in _SENT if key in headers}, **keys},
            data=msgspec.json.encode(body),
        )
        self._limits.note(answer.status, answer.headers, asyncio.get_running_loop().time())
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise BackendBusy(_TOO_OFTEN, detail=answer.body[:200].decode("utf-8", "replace"))
        return answer

    async def aclose(self) -> None:
        """Let go of connections."""
        await self._http.aclose()


class _Library(AsyncApiClient):
    """The library's client with our way to send."""

    def __init__(self, configuration: Configuration, send: Any) -> None:  # noqa: ANN401 - Client.request
        self._send = send
        super().__init__(configuration)

    def _build_rest_client(self) -> "_Library":
        return self

    async def request(self, method: str, url: str, *, headers: Mapping[str, str], body: object, **_: object) -> Any:  # noqa: ANN401 - the library hands it on
        return await self._send(method, urlsplit(url).path, headers, body)
