"""A reverse proxy in front of a real API server, in a thread of its own, with fault injection.

Requests and responses, including watches, are forwarded unchanged. A test can inject errors and knows which requests
are in flight.
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

from adapter.fakecluster.api_errors import ApiError
from adapter.fakecluster.server import ReceivedRequest
from autoscaler.kube.connection import KubeConnection
from tests.fakes.fault_injection import FaultInjection

REQUEST_ID = "X-Test-Request-Id"
_FORWARDED_HEADERS = ("Accept", "Content-Type", "User-Agent")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_RESOURCE_PATH = re.compile(r"/(?:api|apis/[^/]+)/[^/]+/(?:namespaces/[^/]+/)?([a-z]+)(?:/([^/]+)(?:/([a-z]+))?)?")


@dataclass
class FrontProxy:
    """The proxy, with the received requests and the ids of completed ones."""

    server: KubeConnection
    faults: FaultInjection = field(default_factory=FaultInjection)
    requests: list[ReceivedRequest] = field(default_factory=list)
    completed: set[str] = field(default_factory=set)
    url: str = ""

    @classmethod
    @contextmanager
    def open(cls, server: KubeConnection) -> Iterator["FrontProxy"]:
        """Run the proxy until the end of the block."""
        proxy, started = cls(server), Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]()
        thread = threading.Thread(target=lambda: asyncio.run(proxy._serve(started)), name="proxy")
        thread.start()
        loop, stopping = started.result(30)
        try:
            yield proxy
        finally:
            loop.call_soon_threadsafe(stopping.set)
            thread.join(30)

    async def _serve(self, started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]") -> None:
        stopping = asyncio.Event()
        connector = aiohttp.TCPConnector(ssl=self.server.tls, limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(None)) as session:
            application = web.Application(client_max_size=16 * 2**20)
            application.router.add_route("*", "/{path:.*}", partial(self._handle, session))
            runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.05)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            started.set_result((asyncio.get_running_loop(), stopping))
            await stopping.wait()
            await runner.cleanup()

    async def _handle(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        verb, resource = _verb_and_resource(request)
        self.requests.append(ReceivedRequest(verb, request.path, dict(request.query)))
        try:
            try:
                await self.faults.inject(verb, request.path, resource)
            except ApiError as error:
                response: web.StreamResponse = web.json_response(error.status(), status=error.code)
                await response.prepare(request)
                await response.write_eof()
                return response
            return await self._forward(session, request)
        finally:
            self.completed.add(request.headers.get(REQUEST_ID, ""))

    async def _forward(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        headers = {name: request.headers[name] for name in _FORWARDED_HEADERS if name in request.headers}
        url, body = f"{self.server.server}{request.path_qs}", await request.read() or None
        async with session.request(request.method, url, headers=headers, data=body) as upstream:
            response = web.StreamResponse(status=upstream.status, headers={"Content-Type": upstream.content_type})
            with suppress(ConnectionResetError):  # the client has disconnected
                await response.prepare(request)
                if _is_watch(request):
                    self.completed.add(request.headers.get(REQUEST_ID, ""))
                async for chunk in upstream.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
            return response


def _is_watch(request: web.Request) -> bool:
    return request.query.get("watch") in {"1", "true"}


def _verb_and_resource(request: web.Request) -> tuple[str, str]:
    """Return verb and resource of a request as in an RBAC rule."""
    match = _RESOURCE_PATH.fullmatch(request.path)
    if match is None:
        return _VERBS.get(request.method, "get"), request.path
    plural, name, subresource = match.groups()
    read_verb = "watch" if _is_watch(request) else "get" if name else "list"
    return _VERBS.get(request.method, read_verb), f"{plural}/{subresource}" if subresource else plural
