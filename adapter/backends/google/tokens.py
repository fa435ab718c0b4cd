"""Access tokens of Google, cached by google-auth while they are valid.

google-auth is synchronous, so it runs in a thread. Its HTTP requests run in the event loop, so that they end with the
caller's deadline.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Final

import msgspec
from google.auth.exceptions import GoogleAuthError
from google.auth.transport import DEFAULT_RETRYABLE_STATUS_CODES, Request
from yarl import URL

from adapter.backends.connection.http import HttpClient
from adapter.backends.connection.secret_file import Redactor
from adapter.backends.google import credentials
from adapter.backends.google.settings import Google
from adapter.errors import BackendUnauthorized, BackendUnreachable

_MAX_RESPONSE_BYTES: Final = 1024 * 1024
_STATUSES: Final = frozenset(range(600)) - frozenset(DEFAULT_RETRYABLE_STATUS_CODES)
"""google-auth retries the others and transport errors; it does not retry the ``BackendError``s raised instead."""


class TokenSource:
    """Obtains tokens; a changed file or a rejected token leads to a new login."""

    def __init__(self, settings: Google, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock
        self._credentials: Any = None
        self._content = b""
        """The content of the file from which the credentials were created."""

        self._lock = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "google login")
        self.secrets = Redactor()
        # google-auth can log requests and responses with tokens; failures are reported as BackendErrors instead.
        logging.getLogger("google").setLevel(logging.CRITICAL)

    async def headers(self) -> dict[str, str]:
        """Return headers with a valid token and the project that is charged for quota."""
        async with self._lock:
            message = "invalid credentials: check credentialsFile"
            try:
                loaded = await asyncio.to_thread(self._load)
                message = "authentication with Google failed: check credentialsFile"
                if not loaded.valid:
                    await self._refresh(loaded)
            except (GoogleAuthError, ValueError) as error:
                raise BackendUnauthorized(message, detail=" ".join(str(error).split())[:300]) from None
            self.secrets.add(str(loaded.token))
            quota_project = self._settings.quota_project or loaded.quota_project_id
            return {
                "Authorization": f"Bearer {loaded.token}",
                **({"X-Goog-User-Project": quota_project} if quota_project else {}),
            }

    def reset(self) -> None:
        """Log in again for the next request, after the API rejected the token."""
        self._credentials = None

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _load(self) -> Any:  # noqa: ANN401 - google-auth has no types
        """Return the credentials, loaded again if the file changed; blocks."""
        path = credentials.credentials_path(self._settings.credentials_file)
        content = credentials.read_file(path) if path else b""
        if self._credentials is None or content != self._content:
            if path:
                info = credentials.decode(content)
                self.secrets.add(*credentials.secrets(info))
                self._credentials = credentials.from_info(info)
            else:
                self._credentials = credentials.from_metadata_server()
            self._content = content
        return self._credentials

    async def _refresh(self, loaded: Any) -> None:  # noqa: ANN401
        transport = _AuthTransport(self._settings, self._clock)
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, loaded.refresh, transport)
        finally:
            transport.cancel()


class _AuthTransport(Request):
    """Sends the requests of one login."""

    def __init__(self, settings: Google, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._running: Future[SimpleNamespace] | None = None
        self._is_cancelled = False

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ARG002 - ProtectedCall has the deadline
        **_: Any,  # noqa: ANN401 - google-auth's signature
    ) -> SimpleNamespace:
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

    async def _send(
        self, url: str, method: str, body: bytes | None, headers: Mapping[str, str] | None
    ) -> SimpleNamespace:
        parts = URL(url, encoded=True)
        settings = msgspec.structs.replace(
            self._settings.http,
            url=str(parts.origin()),
            tls=msgspec.structs.replace(self._settings.tls, server_name=""),  # that of the Monitoring API
            proxy_url=self._settings.proxy_url
            if url.startswith("https:")
            else "",  # the metadata server is on the node
            max_response_bytes=_MAX_RESPONSE_BYTES,
        )
        client = HttpClient(settings, self._clock)
        try:
            response = await client.request(method, parts.raw_path_qs, accept=_STATUSES, data=body, headers=headers)
        finally:
            await client.aclose()
        return SimpleNamespace(status=response.status, headers=response.headers, data=response.body)
