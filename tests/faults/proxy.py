"""A proxy between a process and the API server that injects faults by path.

It terminates TLS with a certificate of the cluster's authority and forwards the caller's credentials, so that a process
needs only another ``server`` in its kubeconfig. Faults apply to requests whose path and query contain a text; a test
adds and removes them while the process runs. With a namespace, requests for a collection of all namespaces become
requests for that namespace, so that several processes can share one control plane.
"""

import asyncio
import random
import re
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import aiohttp
from aiohttp import web

_NOT_FORWARDED = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})
_ALL_NAMESPACES: Final = re.compile(
    r"^(/apis?/[^?]*?v\d\w*)/(podautoscalers|externalmetrics|horizontalpodautoscalers|deployments|statefulsets"
    r"|replicasets|replicationcontrollers|pods|widgets)(?=\?|$)"
)
_DECIDED: Final = web.RequestKey("decided", dict)
Forge: TypeAlias = Callable[[bytes], bytes]


@dataclass(eq=False)
class Fault:
    """What happens to requests with ``within`` in their path and query."""

    within: str
    method: str = ""
    """Empty: all methods."""

    delay: float = 0.0
    """Seconds by which the request is delayed before it is forwarded."""

    answer_delay: float = 0.0
    """Seconds by which the response is delayed after the API server has handled the request."""

    status: int = 0
    """Respond with this status code instead of forwarding the request."""

    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    """Close the connection instead of forwarding the request."""

    drop_answer: bool = False
    """Close the connection after the API server has handled the request."""

    stall: bool = False
    """Keep the connection open and send nothing, also on streams that are open already."""

    truncate: int = -1
    """Close the connection after so many bytes of the body; negative: send all."""

    forge: Forge | None = None
    """Changes each chunk of the body."""

    swap: bool = False
    """Send each pair of lines of the body in reverse order; the first line of a pair waits for the second."""

    chance: float = 1.0
    """The probability with which the fault applies to a request."""

    every: int = 1
    """Apply the fault only to every so many requests."""

    chances: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311 - the same faults in each run
    count: int = 0
    """The number of matching requests."""

    def matches(self, request: web.Request) -> bool:
        return self.method in {"", request.method} and self.within in request.path_qs

    def applies(self) -> bool:
        """Decide about the next matching request."""
        self.count += 1
        return self.count % self.every == 0 and self.chances.random() < self.chance


@dataclass
class FaultProxy:
    """The proxy, in a thread of its own, with the active faults and the received requests."""

    server: str
    upstream_tls: ssl.SSLContext
    serving_tls: ssl.SSLContext
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and path with query of every request, oldest first."""

    namespace: str = ""
    """The only namespace that the process sees; empty: all."""

    url: str = ""

    def writes(self) -> list[tuple[str, str]]:
        """Return the received writes of scales and statuses."""
        parts = ("/scale", "/podautoscalers/")
        return [one for one in tuple(self.requests) if one[0] != "GET" and any(part in one[1] for part in parts)]

    @contextmanager
    def injected(self, fault: Fault) -> Iterator[Fault]:
        """Inject a fault while the block runs."""
        self.faults.append(fault)
        try:
            yield fault
        finally:
            self.faults.remove(fault)

    @contextmanager
    def serving(self) -> Iterator["FaultProxy"]:
        """Run the proxy while the block runs."""
        started: Future[Callable[[], object]] = Future()
        thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)), name="fault proxy")
        thread.start()
        stop = started.result(30)
        try:
            yield self
        finally:
            stop()
            thread.join(30)

    async def _serve(self, started: "Future[Callable[[], object]]") -> None:
        stopping, loop = asyncio.Event(), asyncio.get_running_loop()
        connector = aiohttp.TCPConnector(ssl=self.upstream_tls, limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(None)) as session:
            application = web.Application(client_max_size=64 * 2**20)
            application.router.add_route("*", "/{path:.*}", partial(self._handle, session))
            runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.05)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self.serving_tls).start()
            self.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
            started.set_result(partial(loop.call_soon_threadsafe, stopping.set))
            await stopping.wait()
            await runner.cleanup()

    async def _handle(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        body = await request.read()
        for fault in self._matching(request):
            await asyncio.sleep(fault.delay)
            if fault.drop:
                return _close(request)
            if fault.status:
                return web.json_response(
                    {"kind": "Status", "code": fault.status}, status=fault.status, headers=fault.headers
                )
        await self._while_stalled(request)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_FORWARDED}
        url = f"{self.server}{self._scoped(request.path_qs)}"
        try:
            async with session.request(request.method, url, headers=headers, data=body or None) as upstream:
                return await self._respond(request, upstream)
        except aiohttp.ClientError:  # the API server is down
            return _close(request)

    def _scoped(self, path: str) -> str:
        return _ALL_NAMESPACES.sub(rf"\1/namespaces/{self.namespace}/\2", path) if self.namespace else path

    async def _respond(self, request: web.Request, upstream: aiohttp.ClientResponse) -> web.StreamResponse:
        for fault in self._matching(request):
            await asyncio.sleep(fault.answer_delay)
            if fault.drop_answer:
                return _close(request)
        response, sent = web.StreamResponse(status=upstream.status, headers={"Content-Type": upstream.content_type}), 0
        swap = any(fault.swap for fault in self._matching(request))
        with suppress(ConnectionResetError):  # the process has disconnected
            await response.prepare(request)
            async for received in _swapped_lines(upstream.content) if swap else upstream.content.iter_any():
                chunk = received
                await self._while_stalled(request)
                for fault in self._matching(request):
                    chunk = fault.forge(chunk) if fault.forge is not None else chunk
                    if 0 <= fault.truncate < sent + len(chunk):
                        await response.write(chunk[: fault.truncate - sent])
                        return _close(request, response)
                sent += len(chunk)
                await response.write(chunk)
            await response.write_eof()
        return response

    def _matching(self, request: web.Request) -> list[Fault]:
        decided: dict[Fault, bool] = request.setdefault(_DECIDED, {})
        matching = [fault for fault in tuple(self.faults) if fault.matches(request)]
        return [fault for fault in matching if decided.setdefault(fault, fault in decided or fault.applies())]

    async def _while_stalled(self, request: web.Request) -> None:
        while any(fault.stall for fault in self._matching(request)):  # noqa: ASYNC110 - changed by another thread
            await asyncio.sleep(0.05)


async def _swapped_lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield each pair of lines in reverse order."""
    first = b""
    async for chunk in content.iter_any():  # an iteration over lines would limit their length
        first += chunk
        lines = first.splitlines(keepends=True)
        while len(lines) >= 2 and lines[1].endswith(b"\n"):
            yield lines[1] + lines[0]
            del lines[:2]
        first = b"".join(lines)
    yield first


def _close(request: web.Request, response: web.StreamResponse | None = None) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return response or web.Response()


def serving_tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the TLS context of the proxy."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
