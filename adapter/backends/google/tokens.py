"""Access tokens of Google, cached by google-auth while they are valid."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import aiohttp
from google.auth.exceptions import GoogleAuthError

from adapter.backends.connection.secret_file import Redactor
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.google import credentials
from adapter.backends.google.auth_transport import AuthTransport
from adapter.backends.google.settings import Google
from adapter.errors import BackendUnauthorized


class GoogleAccessToken(NamedTuple):
    """A token, and the project that is charged for quota."""

    token: str
    quota_project: str


class TokenSource:
    """Obtains tokens; a changed file or a rejected token leads to a new login."""

    def __init__(self, settings: Google) -> None:
        self._settings = settings
        self._tls = TlsFiles(settings.tls)
        self._credentials: Any = None
        self._content = b""
        """The content of the file from which the credentials were created."""

        self._session: aiohttp.ClientSession | None = None
        self._lock = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "google login")  # google-auth is synchronous and waits for the network
        self.secrets = Redactor()
        # google-auth can log requests and responses with tokens; failures are reported as BackendErrors instead.
        logging.getLogger("google").setLevel(logging.CRITICAL)

    async def access_token(self) -> GoogleAccessToken:
        """Return a valid token."""
        async with self._lock:
            try:
                loaded = await asyncio.to_thread(self._load)
            except (GoogleAuthError, ValueError) as error:
                raise BackendUnauthorized("invalid credentials: check credentialsFile", detail=_text(error)) from None
            try:
                if not loaded.valid:
                    await self._refresh(loaded)
            except (GoogleAuthError, ValueError) as error:
                message = "authentication with Google failed: check credentialsFile"
                raise BackendUnauthorized(message, detail=_text(error)) from None
            token = str(loaded.token)
            self.secrets.add(token)
            return GoogleAccessToken(token, self._settings.quota_project or loaded.quota_project_id or "")

    def reset(self) -> None:
        """Log in again for the next request, after the API rejected the token."""
        self._credentials = None

    async def aclose(self) -> None:
        """End the thread and close connections."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._session is not None:
            await self._session.close()

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
        tls = await asyncio.to_thread(self._tls.context)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout(total=None)
            )
        transport = AuthTransport(self._session, tls, self._settings.proxy_url)
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, loaded.refresh, transport)
        finally:
            transport.cancel()


def _text(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
