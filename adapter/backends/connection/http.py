"""An HTTP client for one server, on aiohttp, with a deadline, a response limit, redaction and translated errors.

It does not retry, follow redirects, store cookies or use proxy environment variables.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar

import aiohttp
from yarl import URL

from adapter.backends.connection import http_errors
from adapter.backends.connection.http_credentials import HttpCredentials
from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.connection.secret_file import Redactor
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.errors import BackendRejected

T = TypeVar("T")
_CHUNK_BYTES: Final = 65536
_KEEPALIVE_SECONDS: Final = 75.0  # longer than the default interval of rules, so that connections are reused


class HttpResponse(NamedTuple):
    """A response whose body was read."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """Sends requests to one server."""

    def __init__(
        self, settings: HttpSettings, clock: Callable[[], datetime], secrets: tuple[Redactor, ...] = ()
    ) -> None:
        self._settings = settings
        self._base_url = settings.url.rstrip("/")
        self._tls = TlsFiles(settings.tls)
        self._credentials = HttpCredentials(settings)
        self._protected = ProtectedCall(settings.circuit_breaker, clock, (*self._credentials.secrets, *secrets))
        self._session: aiohttp.ClientSession | None = None

    async def get(self, target: str, deadline: timedelta, **options: Any) -> HttpResponse:  # noqa: ANN401 - aiohttp's
        """Fetch one document; ``target`` is appended to the server's URL and already percent-encoded."""
        return await self.run(target, deadline, lambda: self.request("GET", target, **options))

    async def run(
        self,
        query_key: str,
        deadline: timedelta,
        operation: Callable[[], Awaitable[T]],
        *,
        is_quarantined: bool = False,
    ) -> T:
        """Run an operation that consists of any number of requests, as ``ProtectedCall.run`` does."""
        return await self._protected.run(query_key, deadline, operation, is_quarantined=is_quarantined)

    async def request(
        self,
        method: str,
        target: str,
        *,
        accept: Collection[int] = (),
        **options: Any,  # noqa: ANN401 - aiohttp's
    ) -> HttpResponse:
        """Send one request; call it in an operation of ``run``.

        Raise ``BackendError`` for all statuses other than 200 and those in ``accept``.
        """
        own_headers, tls = await asyncio.to_thread(self._headers_and_tls)
        headers = {**own_headers, **(options.pop("headers", None) or {})}
        try:
            async with self._open_session().request(
                method,
                URL(f"{self._base_url}{target}", encoded=True),
                headers=headers,
                allow_redirects=False,
                ssl=tls,
                server_hostname=self._settings.tls.server_name or None,
                proxy=self._settings.proxy_url or None,
                **options,
            ) as response:
                body = await self._body(response)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise http_errors.from_exception(error) from None
        if response.status != HTTPStatus.OK and response.status not in accept:
            raise http_errors.from_status(response.status, body)
        return HttpResponse(response.status, response.headers, body)

    async def aclose(self) -> None:
        """End running requests and close connections."""
        await self._protected.aclose()
        if self._session is not None:
            await self._session.close()

    def _headers_and_tls(self) -> tuple[dict[str, str], ssl.SSLContext | bool]:
        """Read the files of credentials and TLS; blocks."""
        is_encrypted = self._base_url.startswith("https:")
        return self._credentials.headers(), self._tls.context() if is_encrypted else True

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._settings.max_connections, keepalive_timeout=_KEEPALIVE_SECONDS
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # ProtectedCall has the deadline
            )
            self._session._retry_connection = False  # noqa: SLF001 - else aiohttp repeats a GET without a response
        return self._session

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        parts, size = [], 0
        async for part in response.content.iter_chunked(_CHUNK_BYTES):
            size += len(part)
            if size > self._settings.max_response_bytes:
                response.close()  # else aiohttp reads the rest before it releases the connection
                raise BackendRejected("the response is larger than maxResponseBytes")
            parts.append(part)
        return b"".join(parts)
