"""Transport for the requests of google-auth, which is synchronous and runs in a thread.

The requests run in the event loop, so that they end with the caller's deadline. google-auth retries transport errors
and some statuses; this transport raises ``BackendError``s for both instead, which google-auth does not retry.
"""

import asyncio
import ssl
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

import aiohttp
from google.auth.transport import DEFAULT_RETRYABLE_STATUS_CODES, Request

from adapter.backends.connection import http_errors
from adapter.errors import BackendRejected, BackendUnreachable

_MAX_BYTES: Final = 1024 * 1024


class AuthResponse(NamedTuple):
    """A response in the form that google-auth expects."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class AuthTransport(Request):
    """Sends the requests of one login."""

    def __init__(self, session: aiohttp.ClientSession, tls: ssl.SSLContext, proxy_url: str) -> None:
        self._session = session
        self._tls = tls
        self._proxy_url = proxy_url
        self._loop = asyncio.get_running_loop()
        self._running: Future[AuthResponse] | None = None
        self._is_cancelled = False

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ARG002 - ProtectedCall has the deadline
        **_: Any,  # noqa: ANN401 - google-auth's signature
    ) -> AuthResponse:
        """Send a request from the thread and wait for the response."""
        if self._is_cancelled:
            raise BackendUnreachable("login cancelled")
        self._running = asyncio.run_coroutine_threadsafe(self._send(url, method, body, headers), self._loop)
        return self._running.result()

    def cancel(self) -> None:
        """Cancel the running request and reject further ones."""
        self._is_cancelled = True
        if self._running is not None:
            self._running.cancel()

    async def _send(self, url: str, method: str, body: bytes | None, headers: Mapping[str, str] | None) -> AuthResponse:
        options: dict[str, Any] = {"ssl": self._tls}
        if self._proxy_url and url.startswith("https:"):  # the metadata server is on the node
            options["proxy"] = self._proxy_url
        try:
            async with self._session.request(
                method, url, data=body, headers=headers, allow_redirects=False, **options
            ) as response:
                data = await response.content.read(_MAX_BYTES)
                if not response.content.at_eof():
                    response.close()
                    raise BackendRejected("the token response is too large")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise http_errors.from_exception(error) from None
        if response.status in DEFAULT_RETRYABLE_STATUS_CODES:
            raise http_errors.from_status(response.status, data)
        return AuthResponse(response.status, response.headers, data)
