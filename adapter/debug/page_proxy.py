"""A local proxy for the debugging page, because a browser has no credentials for the service.

It forwards GET requests below /debug with the user's credentials added; `page_access` decides which.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ssl import SSLContext
from typing import Final

import aiohttp
from aiohttp import web
from yarl import URL

from adapter.debug.connection_failure import connection_failure
from adapter.debug.page_access import PageAccess, is_debug_path
from adapter.errors import CannotListen

PAGE: Final = "/debug/page"
_REQUEST_HEADERS: Final = ("Accept", "Accept-Encoding", "If-None-Match")
_RESPONSE_HEADERS: Final = (
    "Content-Type",
    "Content-Encoding",
    "Content-Security-Policy",
    "ETag",
    "X-Now",
    "X-Content-Type-Options",
    "Cache-Control",
    "Vary",
)
_MAX_LINE: Final = 65536
"""Length of a request line, as in the service: that of a replay contains the edited spec."""

_FORBIDDEN: Final = (
    "Open the address that the command printed. It can be used once; restart the command to get another one.\n"
)


@dataclass(frozen=True, slots=True)
class PageTarget:
    """The service that serves the page, and how to authenticate to it."""

    server: str
    credentials: Callable[[], Awaitable[Mapping[str, str]]]
    tls: SSLContext
    server_name: str | None = None
    """The name in the service's certificate, if it is not the host of the URL."""

    proxy: str | None = None
    api_path: Callable[[str], str] = str
    """Converts a path below /debug to the path at the server."""


@asynccontextmanager
async def page_proxy(target: PageTarget, port: int = 0) -> AsyncIterator[str]:
    """Serve the page while the block runs; yield its address."""
    no_timeout = aiohttp.ClientTimeout(total=None)  # the page uses long polling
    async with aiohttp.ClientSession(
        timeout=no_timeout,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,  # the browser decompresses
    ) as session:
        proxy = _PageProxy(target, session)
        runner = web.ServerRunner(web.Server(proxy.handle, max_line_size=_MAX_LINE), shutdown_timeout=0.1)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, "127.0.0.1", port).start()
            except OSError as error:
                reason = os.strerror(error.errno or 0)  # asyncio replaces the strerror
                raise CannotListen(f"cannot listen on 127.0.0.1:{port}: {reason}; choose another --port") from error
            proxy.access = PageAccess(runner.addresses[0][1])
            yield f"http://127.0.0.1:{runner.addresses[0][1]}{proxy.access.path}"
        finally:
            await runner.cleanup()


class _PageProxy:
    """Handles the requests of the browser."""

    def __init__(self, target: PageTarget, session: aiohttp.ClientSession) -> None:
        self.access: PageAccess | None = None
        """Set when the port is known."""

        self._target = target
        self._session = session

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path, _, query = request.raw_path.partition("?")
        access = self.access
        if access is None or request.method != "GET" or not access.is_own_site(request.headers):
            return web.Response(status=403, text=_FORBIDDEN)
        if path.startswith("/open/") and access.exchange(path.removeprefix("/open/")):
            response = web.Response(status=303, headers={"Location": PAGE, "Referrer-Policy": "no-referrer"})
            response.set_cookie(access.cookie_name, access.cookie, path="/debug", httponly=True, samesite="Strict")
            return response
        if not access.has_cookie(request.cookies):
            return web.Response(status=403, text=_FORBIDDEN)
        if not is_debug_path(path):
            return web.Response(status=404)
        path = self._target.api_path(path)
        return await self._forward(request, f"{path}?{query}" if query else path)

    async def _forward(self, request: web.BaseRequest, path: str) -> web.Response:
        target = self._target
        headers = {"Accept-Encoding": "identity"}  # without the header, aiohttp would accept what a browser does not
        headers |= {name: request.headers[name] for name in _REQUEST_HEADERS if name in request.headers}
        url = URL(target.server + path, encoded=True)
        try:
            async with self._session.get(
                url,
                headers=headers | dict(await target.credentials()),
                ssl=target.tls,
                server_hostname=target.server_name,
                proxy=target.proxy,
                allow_redirects=False,  # a redirect could lead the credentials elsewhere
            ) as response:
                copied = {name: response.headers[name] for name in _RESPONSE_HEADERS if name in response.headers}
                return web.Response(status=response.status, headers=copied, body=await response.read())
        except aiohttp.ClientError as error:
            return web.Response(status=502, text=f"{target.server}: {connection_failure(error)}\n")
