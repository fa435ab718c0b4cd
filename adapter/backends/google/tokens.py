"""Tokens of Google's, from memory while they are good."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import aiohttp
from google.auth.exceptions import GoogleAuthError

from adapter.backends.connection.secret_file import Hidden
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.google import credentials
from adapter.backends.google.auth_transport import Carrier
from adapter.backends.google.settings import Google
from adapter.errors import BackendUnauthorized


class Shown(NamedTuple):
    """What a request shows of who we are."""

    token: str
    quota_project: str


class Login:
    """Who we are. A file that changed, or a token that was not believed, makes it log in anew."""

    def __init__(self, settings: Google) -> None:
        self._settings = settings
        self._tls = TlsFiles(settings.tls)
        self._credentials: Any = None
        self._made_of = b""
        self._session: aiohttp.ClientSession | None = None
        self._one_at_a_time = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "google login")  # it waits for the network, so it is none of the loop's
        self.secrets = Hidden()
        # It writes down requests and answers if it is let; what failed is told by us.
        logging.getLogger("google").setLevel(logging.CRITICAL)

    async def show(self) -> Shown:
        """Return a token that is good, and who pays."""
        async with self._one_at_a_time:
            try:
                who = await asyncio.to_thread(self._read)
            except (GoogleAuthError, ValueError) as error:
                raise BackendUnauthorized("the credentials cannot be used", detail=_told(error)) from None
            try:
                if not who.valid:
                    await self._refresh(who)
            except (GoogleAuthError, ValueError) as error:
                raise BackendUnauthorized("Google gives us no token", detail=_told(error)) from None
            token = str(who.token)
            self.secrets.hide(token)
            return Shown(token, self._settings.quota_project or who.quota_project_id or "")

    def forget(self) -> None:
        """Log in anew next time: what we showed was not believed."""
        self._credentials = None

    async def aclose(self) -> None:
        """Let go of the thread and of connections."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._session is not None:
            await self._session.close()

    def _read(self) -> Any:  # noqa: ANN401 - google-auth's classes are not typed
        """See who we are now; in a thread."""
        file = credentials.path(self._settings.credentials_file)
        said = credentials.content(file) if file else b""
        if self._credentials is None or said != self._made_of:
            if file:
                self.secrets.hide(*credentials.secrets(credentials.decoded(said)))
            self._credentials = credentials.of_content(said) if file else credentials.of_platform()
            self._made_of = said
        return self._credentials

    async def _refresh(self, who: Any) -> None:  # noqa: ANN401
        tls = await asyncio.to_thread(self._tls.context)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout(total=None)
            )
        carrier = Carrier(self._session, tls, self._settings.proxy_url)
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, who.refresh, carrier)
        finally:
            carrier.cancel()


def _told(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
