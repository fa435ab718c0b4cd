"""Calls of one AWS service: signed, in the region that is asked for, never retried, told in our own words."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession

from adapter.backends.connection.aws import errors
from adapter.backends.connection.aws.credentials import Credentials, region_of
from adapter.backends.connection.aws.session import BoundedSession
from adapter.backends.connection.aws.settings import AwsSettings
from adapter.backends.connection.aws.thread_runner import Aside
from adapter.backends.resilience.protected_call import Guard

T = TypeVar("T")
_NOT_OURS: Final = 600
"""Seconds that aiobotocore may wait for the network: the guard's deadline comes first."""

for _talkative in ("botocore", "aiobotocore"):  # they write requests into the log, and with them what proves who we are
    logging.getLogger(_talkative).setLevel(logging.WARNING)


class AwsClient:
    """Asks one service, in whatever region."""

    def __init__(self, service: str, settings: AwsSettings, clock: Callable[[], datetime]) -> None:
        self._service = service
        self._settings = settings
        self._aside = Aside()
        self._config = _config(settings)
        self._credentials = Credentials(settings, self._config, self._aside)
        self.secrets = (self._credentials.hidden,)
        """What must not be told."""

        self._guard = Guard(settings.breaker, clock, self.secrets)
        self._session: Any = None  # aiobotocore tells no types
        self._turn = asyncio.Lock()
        self._clients: dict[str, asyncio.Task[Any]] = {}

    async def through(self, about: str, deadline: timedelta, ask: Callable[[], Awaitable[T]]) -> T:
        """Do whatever it takes to answer a question, with as many calls as that needs, under one deadline."""
        return await self._guard.ask(about, deadline, ask)

    async def call(self, region: str, operation: str, **request: Any) -> Any:  # noqa: ANN401 - each its own shape
        """Make one call, inside of ``through``; an empty region is the configured one."""
        try:
            client = await self._client(region)
            return await getattr(client, operation)(**request)
        except Exception as error:  # noqa: BLE001 - for an answer that is none of AWS's its parsers raise anything
            told = errors.of(error)
            if errors.is_disbelief(told):
                self._credentials.forget()
            raise told from None

    async def aclose(self) -> None:
        """End what is under way, and let go of connections."""
        await self._guard.aclose()
        opening, self._clients = tuple(self._clients.values()), {}
        await self._aside.aclose()
        for client in await asyncio.gather(*opening, return_exceptions=True):
            if not isinstance(client, BaseException):
                await client.close()

    async def _client(self, region: str) -> Any:  # noqa: ANN401 - aiobotocore makes its classes as it runs
        """Give the client for a region. Opening one goes on if who wanted it cannot wait: the next one will be glad."""
        if region not in self._clients:
            opening = self._clients[region] = asyncio.create_task(self._open(region), name="aws client")
            opening.add_done_callback(lambda done: self._opened(region, done))
        return await asyncio.shield(self._clients[region])

    async def _open(self, region: str) -> Any:  # noqa: ANN401 - likewise
        """Make a client; that reads descriptions of services, so it happens beside the loop."""
        async with self._turn:
            if self._session is None:
                self._session = await asyncio.to_thread(_session, self._credentials)
            made = partial(
                self._session.create_client,
                self._service,
                region_name=region or region_of(self._settings),
                endpoint_url=self._settings.endpoint_url or None,
                config=self._config,
            )
            try:
                return await self._aside.run(lambda: made().__aenter__())
            except Exception as error:  # noqa: BLE001 - whatever it finds in files and in the environment
                self._session = None  # it remembers what it read
                raise errors.of_opening(error) from None

    def _opened(self, region: str, opening: asyncio.Task[Any]) -> None:
        if (opening.cancelled() or opening.exception()) and self._clients.get(region) is opening:
            del self._clients[region]


def _session(credentials: Credentials) -> AioSession:
    made = AioSession()
    made.register_component("credential_provider", credentials)
    return made


def _config(settings: AwsSettings) -> AioConfig:
    proxies = {"http": settings.proxy_url, "https": settings.proxy_url} if settings.proxy_url else {}
    return AioConfig(
        http_session_cls=BoundedSession,
        connect_timeout=_NOT_OURS,
        read_timeout=_NOT_OURS,
        max_pool_connections=settings.connections,
        retries={"total_max_attempts": 1, "mode": "standard"},
        proxies=proxies,
        parameter_validation=False,  # what is asked was checked when the rule was read, and five hundred cost time
        account_id_endpoint_mode="disabled",
        user_agent_extra="steadyscale",
    )
