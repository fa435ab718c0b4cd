"""How google-auth's own requests travel: it is synchronous and runs in a thread, the network is the loop's.

So what it asks for ends with whoever waits for it, and nothing is retried: google-auth tries again what it is told was
lost on the way, and here it is told our own errors instead.
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

_LARGEST: Final = 1024 * 1024


class Carried(NamedTuple):
    """An answer, as google-auth reads it."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class Carrier(Request):
    """Takes the requests of one login from its thread to the loop."""

    def __init__(self, session: aiohttp.ClientSession, tls: ssl.SSLContext, proxy: str) -> None:
        self._session = session
        self._tls = tls
        self._proxy = proxy
        self._loop = asyncio.get_running_loop()
        self._under_way: Future[Carried] | None = None
        self._is_over = False

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ARG002 - the rule's deadline is the only one
        **_: Any,  # noqa: ANN401 - google-auth's own
    ) -> Carried:
        """Send a request and wait for its answer; in a thread."""
        if self._is_over:
            raise BackendUnreachable("nobody waits for it any more")
        self._under_way = asyncio.run_coroutine_threadsafe(self._send(url, method, body, headers), self._loop)
        return self._under_way.result()

    def cancel(self) -> None:
        """End what is under way, and let nothing begin."""
        self._is_over = True
        if self._under_way is not None:
            self._under_way.cancel()

    async def _send(self, url: str, method: str, body: bytes | None, headers: Mapping[str, str] | None) -> Carried:
        options: dict[str, Any] = {"ssl": self._tls}
        if self._proxy and url.startswith("https:"):  # the metadata server is on the machine
            options["proxy"] = self._proxy
        try:
            async with self._session.request(
                method, url, data=body, headers=headers, allow_redirects=False, **options
            ) as response:
                said = await response.content.read(_LARGEST)
                if not response.content.at_eof():
                    response.close()
                    raise BackendRejected("a token is not that large")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise http_errors.of_exception(error) from None
        if response.status in DEFAULT_RETRYABLE_STATUS_CODES:
            raise http_errors.of_status(response.status, said)
        return Carried(response.status, response.headers, said)
