"""A local proxy for the debugging page, because a browser has no credentials for the service.

It forwards GET requests below /debug with the user's credentials added. It listens on loopback and rejects requests
with another Host header, which protects against DNS rebinding.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Final

import aiohttp
from aiohttp import web

PAGE: Final = "/debug/page"
_LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost"})
_REQUEST_HEADERS: Final = ("Accept", "If-None-Match")
_RESPONSE_HEADERS: Final = frozenset(
    {"Content-Type", "Content-Security-Policy", "ETag", "X-Now", "X-Content-Type-Options", "Cache-Control"}
)


@asynccontextmanager
async def page_proxy(
    service: str, credentials: Callable[[], Awaitable[Mapping[str, str]]], tls: SSLContext, port: int = 0
) -> AsyncIterator[str]:
    """Serve the page while the block runs; yield its address."""
    no_timeout = aiohttp.ClientTimeout(total=None)  # the page uses long polling
    async with aiohttp.ClientSession(service, timeout=no_timeout) as session:

        async def forward(request: web.Request) -> web.Response:
            if request.url.host not in _LOCAL_HOSTS:
                raise web.HTTPForbidden
            headers = {name: request.headers[name] for name in _REQUEST_HEADERS if name in request.headers}
            headers |= await credentials()
            try:
                async with session.get(request.rel_url, headers=headers, ssl=tls) as response:
                    copied = {name: response.headers[name] for name in _RESPONSE_HEADERS if name in response.headers}
                    return web.Response(status=response.status, headers=copied, body=await response.read())
            except aiohttp.ClientError as error:
                raise web.HTTPBadGateway from error

        async def redirect(_: web.Request) -> web.Response:
            raise web.HTTPFound(PAGE)

        application = web.Application()
        application.router.add_get("/debug/{rest:.*}", forward)
        application.router.add_get("/", redirect)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}{PAGE}"
        finally:
            await runner.cleanup()
