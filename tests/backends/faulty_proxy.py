"""A TCP proxy in front of any server, with injected failures.

It forwards bytes, so it works with every protocol; injected HTTP responses are for HTTP servers only. It runs in a
thread with its own event loop, so it is independent of the test's event loop.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")
LOOPBACK: Final = "127.0.0.1"
_RESET: Final = struct.pack("ii", 1, 0)  # a zero linger time makes the kernel send RST instead of FIN
_SERVER_SPEAKS_FIRST: Final = b"\0"


class FaultyProxy:
    """Forwards bytes unless a failure is set; a failure also affects existing connections."""

    def __init__(self) -> None:
        self.port = 0
        self.upstream = (LOOPBACK, 0)
        self.client_speaks_first = True
        """False if the server sends a greeting: then failures start with the connection."""

        self.connections = 0
        """How many connections were ever accepted."""

        self._mode = "forward"
        self._delay = 0.0
        self._response = b""
        self._stalled_text = b""
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_idle(self) -> bool:
        """Whether no connection is open."""
        return not self._tasks

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def forward(self) -> None:
        """End the failure; affected connections are closed."""
        self._set_mode("forward")

    def refuse_connections(self) -> None:
        """Close the port."""
        self._set_mode("refuse")

    def stall(self) -> None:
        """Accept requests and never respond."""
        self._set_mode("stall")

    def stall_requests_with(self, text: bytes) -> None:
        """Never respond to requests that contain this text; forward the others."""
        self._set_mode("forward", stalled_text=text)

    def drip(self, start: bytes) -> None:
        """Respond with the start of a response and then one byte at a time."""
        self._set_mode("drip", response=start)

    def cut(self, start: bytes = b"") -> None:
        """Close the connection after a request, after the start of a response or immediately."""
        self._set_mode("cut", response=start)

    def respond(self, response: bytes) -> None:
        """Respond to each request with these bytes."""
        self._set_mode("respond", response=response)

    def respond_http(self, status: int, body: bytes = b"", *headers: str) -> None:
        """Respond to each request with an HTTP response."""
        lines = [f"HTTP/1.1 {status} Injected", f"Content-Length: {len(body)}", *headers, "", ""]
        self.respond("\r\n".join(lines).encode() + body)

    def delay(self, seconds: float) -> None:
        """Forward everything, each part of a response after a delay."""
        self._set_mode("forward", delay=seconds)

    # ---- the proxy's thread

    def run_in_thread(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the proxy's thread and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(20)

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def finish(self) -> None:
        self._loop.close()

    def _set_mode(self, mode: str, *, delay: float = 0.0, response: bytes = b"", stalled_text: bytes = b"") -> None:
        self.call(self._apply_mode(mode, delay, response, stalled_text))

    async def _apply_mode(self, mode: str, delay: float, response: bytes, stalled_text: bytes) -> None:
        before, self._mode, self._delay = self._mode, mode, delay
        self._response, self._stalled_text = response, stalled_text
        if mode == "refuse":
            await self.close()
        elif self._server is None:
            await self.open()
        if mode == "forward" and before != "forward":  # partial responses cannot be completed
            for task in tuple(self._tasks):
                task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._handle(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # expected: failures are injected
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one connection; the upstream connection is opened for the first request that is forwarded."""
        responses: asyncio.Task[None] | None = None
        upstream: asyncio.StreamWriter | None = None
        is_new = True
        try:
            while data := await self._first(reader) if is_new else await self._next(reader, wait=upstream is not None):
                is_new = False
                if self._stalled_text and self._stalled_text in data:
                    await _discard(reader)
                    return
                if self._mode != "forward":
                    await self._fail(reader, writer)
                    if self._mode != "respond":
                        return
                    continue
                if upstream is None:
                    upstream_reader, upstream = await asyncio.open_connection(*self.upstream)
                    responses = asyncio.create_task(self._forward_responses(upstream_reader, writer))
                if data is not _SERVER_SPEAKS_FIRST:
                    upstream.write(data)
                    await upstream.drain()
        finally:
            if responses is not None:
                responses.cancel()
            if upstream is not None:
                upstream.close()

    async def _first(self, reader: asyncio.StreamReader) -> bytes:
        return await self._next(reader, wait=False) if self.client_speaks_first else _SERVER_SPEAKS_FIRST

    async def _next(self, reader: asyncio.StreamReader, *, wait: bool) -> bytes:
        """Read from the client; without ``wait`` connect upstream soon, because the server may speak first."""
        if wait or self._mode != "forward":
            return await reader.read(65536)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                return await reader.read(65536)
        return _SERVER_SPEAKS_FIRST

    async def _fail(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        match self._mode:
            case "stall":
                await _discard(reader)
            case "drip":
                writer.write(self._response)
                while True:
                    await writer.drain()
                    await asyncio.sleep(0.02)
                    writer.write(b" ")
            case "cut":
                writer.write(self._response)
                await writer.drain()
                if not self._response:
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            case "respond":
                writer.write(self._response)
                await writer.drain()
            case mode:
                raise AssertionError(f"unknown mode {mode}")

    async def _forward_responses(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await asyncio.sleep(self._delay)
                writer.write(data)
                await writer.drain()
        writer.close()


async def _discard(reader: asyncio.StreamReader) -> None:
    while await reader.read(65536):
        pass


@contextmanager
def faulty_proxy() -> Iterator[FaultyProxy]:
    """Run a proxy during the block; its upstream is set later."""
    proxy = FaultyProxy()
    thread = threading.Thread(target=proxy.run_in_thread, name="faulty-proxy")
    thread.start()
    try:
        proxy.call(proxy.open())
        yield proxy
    finally:
        proxy.call(proxy.close())
        proxy.stop()
        thread.join()
        proxy.finish()
