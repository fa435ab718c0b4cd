"""A client of one HTTP server: ours decides about time, size, redirects, secrets and failures.

Nothing is retried, no redirect is followed, no cookie is kept, and nothing of the environment is used.
"""

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar

import aiohttp
from yarl import URL

from adapter.backends.connection import http_errors
from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.connection.secret_file import Hidden, SecretFile
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.resilience.protected_call import Guard
from adapter.errors import BackendRejected

T = TypeVar("T")
_CHUNK: Final = 65536
_KEPT: Final = 75.0
"""Seconds that an idle connection is kept: more than an interval, so that the next question need not shake hands."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Shown(NamedTuple):
    """What one request shows of who we are."""

    headers: dict[str, str]
    tls: ssl.SSLContext | bool


class HttpClient:
    """Asks one server."""

    def __init__(self, settings: HttpSettings, clock: Callable[[], datetime], hidden: tuple[Hidden, ...] = ()) -> None:
        self._settings = settings
        self._base = settings.url.rstrip("/")
        self._tls = TlsFiles(settings.tls)
        self._token = SecretFile(settings.bearer_token_file, "bearerTokenFile") if settings.bearer_token_file else None
        basic = settings.basic
        self._password = SecretFile(basic.password_file, "basic.passwordFile") if basic else None
        self._headers = {key: SecretFile(path, f"headerFiles.{key}") for key, path in settings.header_files.items()}
        own = (self._token, self._password, *self._headers.values())
        secrets = (*(each for each in own if each is not None), Hidden(*settings.headers.values()), *hidden)
        self._guard = Guard(settings.breaker, clock, secrets)
        self._session: aiohttp.ClientSession | None = None

    async def get(self, target: str, deadline: timedelta, **options: Any) -> Answer:  # noqa: ANN401 - aiohttp's own
        """Ask for one document; ``target`` comes behind the server's URL, encoded already."""
        return await self.through(target, deadline, lambda: self.request("GET", target, **options))

    async def through(self, about: str, deadline: timedelta, ask: Callable[[], Awaitable[T]]) -> T:
        """Do whatever it takes to answer a question, with as many requests as that needs, under one deadline."""
        return await self._guard.ask(about, deadline, ask)

    async def request(
        self,
        method: str,
        target: str,
        *,
        accept: Collection[int] = (),
        **options: Any,  # noqa: ANN401 - aiohttp's own
    ) -> Answer:
        """Send one request and read its answer, inside of ``through``.

        Raise our own errors for any status but 200 and those to ``accept``.
        """
        shown = await asyncio.to_thread(self._show)
        headers = {**shown.headers, **(options.pop("headers", None) or {})}
        try:
            async with self._opened().request(
                method,
                URL(f"{self._base}{target}", encoded=True),
                headers=headers,
                allow_redirects=False,
                ssl=shown.tls,
                server_hostname=self._settings.tls.server_name or None,
                proxy=self._settings.proxy_url or None,
                **options,
            ) as response:
                body = await self._body(response)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise http_errors.of_exception(error) from None
        if response.status != HTTPStatus.OK and response.status not in accept:
            raise http_errors.of_status(response.status, body)
        return Answer(response.status, response.headers, body)

    async def aclose(self) -> None:
        """End what is under way, and let go of connections."""
        await self._guard.aclose()
        if self._session is not None:
            await self._session.close()

    def _show(self) -> _Shown:
        """Put together what we show; in a thread, because secrets and certificates are files."""
        headers = {**self._settings.headers, **{key: file.read_now() for key, file in self._headers.items()}}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.read_now()}"
        elif self._password is not None and self._settings.basic is not None:
            pair = f"{self._settings.basic.username}:{self._password.read_now()}"
            encoded = base64.b64encode(pair.encode()).decode()
            self._password.hide(encoded)
            headers["Authorization"] = f"Basic {encoded}"
        is_encrypted = self._base.startswith("https:")
        return _Shown(headers, self._tls.context() if is_encrypted else True)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._settings.connections, keepalive_timeout=_KEPT),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # the guard's deadline is the only one
                raise_for_status=False,
            )
        return self._session

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        parts, size = [], 0
        async for part in response.content.iter_chunked(_CHUNK):
            size += len(part)
            if size > self._settings.max_response_bytes:
                response.close()  # or what is left of it would be read before the connection is given back
                raise BackendRejected("the answer is larger than maxResponseBytes")
            parts.append(part)
        return b"".join(parts)
