"""A door in front of a real API server, in a thread of its own: it knows who is inside, and can refuse whom it is told.

The door passes on what is asked and what is answered as they are, watches included. So a test can make a real server
refuse one request, which no real server does on demand, and can know that nobody waits for an answer.
"""

import asyncio
import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import aiohttp
from aiohttp import web

from adapter.fakecluster.api_errors import Refused
from adapter.fakecluster.fault_injection import Weather
from adapter.fakecluster.server import Asked
from autoscaler.kube.connection import Connection

NUMBER = "X-Test-Number"
_PASSED_ON = ("Accept", "Content-Type", "User-Agent")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PLACE = re.compile(r"/(?:api|apis/[^/]+)/[^/]+/(?:namespaces/[^/]+/)?([a-z]+)(?:/([^/]+)(?:/([a-z]+))?)?")


@dataclass
class Front:
    """The door: what was asked, and which requests, by the number that they carry, have been answered."""

    server: Connection
    weather: Weather = field(default_factory=Weather)
    asked: list[Asked] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    url: str = ""

    @classmethod
    @contextmanager
    def open(cls, server: Connection) -> Iterator["Front"]:
        """Keep the door for the length of the block."""
        front, started = cls(server), Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]()
        thread = threading.Thread(target=lambda: asyncio.run(front._serve(started)), name="front")
        thread.start()
        loop, told = started.result(30)
        try:
            yield front
        finally:
            loop.call_soon_threadsafe(told.set)
            thread.join(30)

    async def _serve(self, started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]") -> None:
        told = asyncio.Event()
        connector = aiohttp.TCPConnector(ssl=self.server.tls, limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(None)) as session:
            application = web.Application(client_max_size=16 * 2**20)
            application.router.add_route("*", "/{path:.*}", partial(self._answer, session))
            runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.05)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            started.set_result((asyncio.get_running_loop(), told))
            await told.wait()
            await runner.cleanup()

    async def _answer(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        verb, resource = _described(request)
        self.asked.append(Asked(verb, request.path, dict(request.query)))
        try:
            try:
                await self.weather.let_through(verb, request.path, resource)
            except Refused as refused:
                response: web.StreamResponse = web.json_response(refused.status(), status=refused.code)
                await response.prepare(request)
                await response.write_eof()
                return response
            return await self._pass_on(session, request)
        finally:
            self.answered.add(request.headers.get(NUMBER, ""))

    async def _pass_on(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        url, body = f"{self.server.server}{request.path_qs}", await request.read() or None
        async with session.request(request.method, url, headers=headers, data=body) as answer:
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            with suppress(ConnectionResetError):  # whoever asked has left
                await response.prepare(request)
                if _is_watch(request):
                    self.answered.add(request.headers.get(NUMBER, ""))
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
            return response


def _is_watch(request: web.Request) -> bool:
    return request.query.get("watch") in {"1", "true"}


def _described(request: web.Request) -> tuple[str, str]:
    """Say what a request wants as a role would."""
    found = _PLACE.fullmatch(request.path)
    if found is None:
        return _VERBS.get(request.method, "get"), request.path
    plural, name, subresource = found.groups()
    reads = "watch" if _is_watch(request) else "get" if name else "list"
    return _VERBS.get(request.method, reads), f"{plural}/{subresource}" if subresource else plural
