"""The debugging page for a browser, which has no token: passed through on loopback, with the visitor's token added.

Only what is read on the page goes through, and only for who asked for loopback by name: a page from elsewhere that has
its own name point here is refused.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Final

import aiohttp
from aiohttp import web

PAGE: Final = "/debug/page"
_OURS: Final = frozenset({"127.0.0.1", "localhost"})
_ASKED: Final = ("Accept", "If-None-Match")
_ANSWERED: Final = (
    "Content-Type",
    "Content-Security-Policy",
    "ETag",
    "X-Now",
    "X-Content-Type-Options",
    "Cache-Control",
)


@asynccontextmanager
async def page_door(
    service: str, credentials: Callable[[], Awaitable[Mapping[str, str]]], tls: SSLContext, port: int = 0
) -> AsyncIterator[str]:
    """Open the door for the length of the block, and yield the page's address."""
    forever = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(service, timeout=forever) as session:

        async def answer(request: web.Request) -> web.Response:
            if request.url.host not in _OURS:
                raise web.HTTPForbidden
            asked = {name: request.headers[name] for name in _ASKED if name in request.headers}
            asked |= await credentials()
            try:
                async with session.get(request.rel_url, headers=asked, ssl=tls) as found:
                    told = {name: found.headers[name] for name in _ANSWERED if name in found.headers}
                    return web.Response(status=found.status, headers=told, body=await found.read())
            except aiohttp.ClientError as error:
                raise web.HTTPBadGateway from error

        application = web.Application()
        application.router.add_get("/debug/{rest:.*}", answer)
        application.router.add_get("/", _to_the_page)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}{PAGE}"
        finally:
            await runner.cleanup()


async def _to_the_page(_: web.Request) -> web.Response:
    raise web.HTTPFound(PAGE)
