"""A client of one AWS service on aiobotocore: signed requests in any region, without retries."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final

import aiohttp
from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession

from adapter.backends.connection.aws import errors
from adapter.backends.connection.aws.credentials import AwsCredentials, region_of
from adapter.backends.connection.aws.settings import AwsSettings
from adapter.backends.connection.aws.thread_runner import ThreadRunner
from adapter.backends.connection.http import read_body
from adapter.backends.resilience.protected_call import ProtectedCall

_LIBRARY_TIMEOUT: Final = 600
"""Seconds; effectively disables aiobotocore's own timeouts, because ``ProtectedCall`` has the deadline."""

MAX_RESPONSE_BYTES: Final = 16 * 1024 * 1024
"""Five times the largest response of GetMetricData."""

for _logger in ("botocore", "aiobotocore"):  # at DEBUG they log requests with their signatures
    logging.getLogger(_logger).setLevel(logging.WARNING)


class AwsClient:
    """Sends requests to one service, with one aiobotocore client for each region."""

    def __init__(self, service: str, settings: AwsSettings, clock: Callable[[], datetime]) -> None:
        self._service = service
        self._settings = settings
        self._thread_runner = ThreadRunner()
        self._config = _config(settings)
        self._credentials = AwsCredentials(settings, self._config, self._thread_runner)
        self.secrets = (self._credentials.redactor,)
        self._protected = ProtectedCall(settings.circuit_breaker, clock, self.secrets)
        self.run = self._protected.run
        """Runs an operation that consists of any number of requests."""

        self._session: Any = None  # aiobotocore has no types
        self._lock = asyncio.Lock()
        self._clients: dict[str, asyncio.Task[Any]] = {}

    async def request(self, region: str, operation: str, **parameters: Any) -> Any:  # noqa: ANN401 - by operation
        """Send one request; call it in an operation of ``run``. An empty region is the configured one."""
        try:
            client = await self._client(region)
            return await getattr(client, operation)(**parameters)
        except Exception as error:  # noqa: BLE001 - aiobotocore's parsers raise anything for an invalid response
            translated = errors.from_exception(error)
            if errors.is_authentication_failure(translated):
                self._credentials.reset()
            raise translated from None

    async def aclose(self) -> None:
        await self._protected.aclose()
        opening, self._clients = tuple(self._clients.values()), {}
        await self._thread_runner.aclose()
        for client in await asyncio.gather(*opening, return_exceptions=True):
            if not isinstance(client, BaseException):
                await client.close()

    async def _client(self, region: str) -> Any:  # noqa: ANN401 - aiobotocore creates its classes at runtime
        """Return the client of a region. Its creation continues if the caller is cancelled, for the next caller."""
        if region not in self._clients:
            opening = self._clients[region] = asyncio.create_task(self._create_client(region), name="aws client")
            opening.add_done_callback(lambda task: self._discard_failed(region, task))
        return await asyncio.shield(self._clients[region])

    async def _create_client(self, region: str) -> Any:  # noqa: ANN401 - see _client
        """Create a client in a thread, because aiobotocore reads the descriptions of services from files."""
        async with self._lock:
            if self._session is None:
                self._session = await asyncio.to_thread(_session, self._credentials)
            create = partial(
                self._session.create_client,
                self._service,
                region_name=region or region_of(self._settings),
                endpoint_url=self._settings.endpoint_url or None,
                config=self._config,
            )
            try:
                return await self._thread_runner.run(lambda: create().__aenter__())
            except Exception as error:  # noqa: BLE001 - depends on files and on the environment
                self._session = None  # it caches what it read
                raise errors.from_client_creation(error) from None

    def _discard_failed(self, region: str, opening: asyncio.Task[Any]) -> None:
        if (opening.cancelled() or opening.exception()) and self._clients.get(region) is opening:
            del self._clients[region]


class _BoundedSession(AIOHTTPSession):  # type: ignore[misc]  # aiobotocore has no types
    async def _get_session(self, proxy_url: str | None) -> "_BoundedClient":
        return _BoundedClient(await super()._get_session(proxy_url))


class _BoundedClient:
    """An aiohttp session that limits responses and follows no redirects, which could forward credentials."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def request(self, method: str, **options: Any) -> aiohttp.ClientResponse:  # noqa: ANN401 - aiohttp's
        response = await self._session.request(method, allow_redirects=False, **options)
        try:
            # _body is where aiohttp's read() stores the body.
            response._body = await read_body(response, MAX_RESPONSE_BYTES, "16 MiB")  # noqa: SLF001
        except BaseException:
            response.close()
            raise
        return response


def _session(credentials: AwsCredentials) -> AioSession:
    session = AioSession()
    session.register_component("credential_provider", credentials)
    return session


def _config(settings: AwsSettings) -> AioConfig:
    proxies = {"http": settings.proxy_url, "https": settings.proxy_url} if settings.proxy_url else {}
    return AioConfig(
        http_session_cls=_BoundedSession,
        connect_timeout=_LIBRARY_TIMEOUT,
        read_timeout=_LIBRARY_TIMEOUT,
        max_pool_connections=settings.max_connections,
        retries={"total_max_attempts": 1, "mode": "standard"},
        proxies=proxies,
        parameter_validation=False,  # rules are validated when loaded; validating 500 queries again takes time
        account_id_endpoint_mode="disabled",
        user_agent_extra="steadyscale",
    )
