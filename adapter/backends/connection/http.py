"""An HTTP client for one server, on aiohttp, with a deadline, a response limit, redaction and translated errors.

It does not retry, follow redirects, store cookies or use proxy environment variables.
"""

import asyncio
import base64
import ssl
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from io import BytesIO
from typing import Any, Final, NamedTuple

import aiohttp
from yarl import URL

from adapter.backends.connection import http_errors, shared_limits
from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.connection.secret_file import Redactor, SecretFile
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.errors import BackendRejected

_KEEPALIVE_SECONDS: Final = 75.0  # longer than the default interval of rules, so that connections are reused


class HttpResponse(NamedTuple):
    """A response whose body was read."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Credentials:
    """The fixed headers and the credentials of one server; files are read at every request, for rotated secrets."""

    def __init__(self, settings: HttpSettings) -> None:
        self._headers = settings.headers
        self._header_files = {
            key: SecretFile(path, f"headerFiles.{key}") for key, path in settings.header_files.items()
        }
        self._token = SecretFile(settings.bearer_token_file, "bearerTokenFile") if settings.bearer_token_file else None
        basic = settings.basic_auth
        self._username = basic.username if basic else ""
        self._password = SecretFile(basic.password_file, "basicAuth.passwordFile") if basic else None
        files = (self._token, self._password, *self._header_files.values())
        self.secrets: tuple[Redactor, ...] = (
            *(file for file in files if file is not None),
            Redactor(*settings.headers.values()),
        )
        """Removed from the messages of errors."""

    def headers(self) -> dict[str, str]:
        """Return the headers of one request; blocks, so call it in a thread."""
        headers = {**self._headers, **{key: file.read_sync() for key, file in self._header_files.items()}}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.read_sync()}"
        elif self._password is not None:
            pair = f"{self._username}:{self._password.read_sync()}"
            encoded = base64.b64encode(pair.encode()).decode()
            self._password.add(encoded)
            headers["Authorization"] = f"Basic {encoded}"
        return headers


class HttpClient:
    """Sends requests to one server."""

    def __init__(
        self, settings: HttpSettings, clock: Callable[[], datetime], secrets: tuple[Redactor, ...] = ()
    ) -> None:
        self._settings = settings
        self._base_url = settings.url.rstrip("/")
        self._tls = TlsFiles(settings.tls)
        self._credentials = _Credentials(settings)
        self._protected = ProtectedCall(settings.circuit_breaker, clock, (*self._credentials.secrets, *secrets))
        self.run = self._protected.run
        """Runs an operation that consists of any number of requests."""

        self._session: aiohttp.ClientSession | None = None

    async def get(self, target: str, deadline: timedelta, **options: Any) -> HttpResponse:  # noqa: ANN401 - aiohttp's
        """Fetch one document; ``target`` is appended to the server's URL and already percent-encoded."""
        return await self.run(target, deadline, lambda: self.request("GET", target, **options))

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
                body = await read_body(response, self._settings.max_response_bytes)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise http_errors.from_exception(error) from None
        if response.status != HTTPStatus.OK and response.status not in accept:
            raise http_errors.from_status(response.status, body)
        return HttpResponse(response.status, response.headers, body)

    async def aclose(self) -> None:
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


async def read_body(response: aiohttp.ClientResponse, max_bytes: int, setting: str = "maxResponseBytes") -> bytes:
    """Return the body; raise ``BackendRejected`` if it is larger than ``max_bytes``, the value of ``setting``."""
    if max_bytes > shared_limits.MAX_BYTES_OF_TENANT and shared_limits.is_of_tenant():
        max_bytes, setting = shared_limits.MAX_BYTES_OF_TENANT, "16 MiB, the limit for queries of a namespace"
    body = BytesIO()  # returns its content without a copy
    is_too_large = (response.content_length or 0) > max_bytes
    if not is_too_large:
        async for chunk in response.content.iter_any():  # decompressed, in small chunks
            is_too_large = body.tell() + len(chunk) > max_bytes
            if is_too_large:
                break
            if body.tell() + len(chunk) > shared_limits.SMALL:
                await shared_limits.reserve(body.tell() + len(chunk))
            body.write(chunk)
    if is_too_large:
        body.close()
        response.close()  # else aiohttp reads the rest before it releases the connection
        raise BackendRejected(f"the response is larger than {setting}")
    return body.getvalue()
