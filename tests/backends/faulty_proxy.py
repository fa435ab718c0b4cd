"""A hop in front of any server that makes trouble when told to: refuses, stalls, drips, cuts, answers for it.

It moves bytes, so whatever the protocol is, it can stand in between; what only HTTP has, a status, is said in HTTP. It
runs in a thread with a loop of its own: what it holds or blocks is none of the test's.
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
_RESET: Final = struct.pack("ii", 1, 0)  # a pending zero linger makes the kernel send RST instead of FIN


class Hop:
    """What happens to the bytes: they pass, unless told otherwise. An order holds for old connections, too."""

    def __init__(self) -> None:
        self.port = 0
        self.upstream = (LOOPBACK, 0)
        """Whom it stands in front of."""

        self.is_spoken_to_first = True
        """Whether clients speak before the server does. Where the server greets, trouble begins with the connection."""

        self.connections = 0
        """How many were ever made."""

        self._kind = "pass"
        self._delay = 0.0
        self._answer = b""
        self._word = b""
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def is_idle(self) -> bool:
        """Whether nobody is connected."""
        return not self._under_way

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def delegate(self) -> None:
        """Make no more trouble; connections that had some are cut."""
        self._tell("pass")

    def refuse(self) -> None:
        """Let nobody in: the port is closed."""
        self._tell("refuse")

    def stall(self) -> None:
        """Take everything and answer nothing."""
        self._tell("stall")

    def stall_for(self, word: bytes) -> None:
        """Answer nothing that has this word in it, and pass on everything else."""
        self._tell("pass", word=word)

    def drip(self, beginning: bytes) -> None:
        """Begin to answer, and send a byte now and then."""
        self._tell("drip", answer=beginning)

    def cut(self, beginning: bytes = b"") -> None:
        """Break the connection as soon as something is asked, after the beginning of an answer or at once."""
        self._tell("cut", answer=beginning)

    def answer(self, said: bytes) -> None:
        """Answer every question with these bytes."""
        self._tell("answer", answer=said)

    def answer_http(self, status: int, body: bytes = b"", *headers: str) -> None:
        """Answer every request with a status."""
        lines = [f"HTTP/1.1 {status} Because", f"Content-Length: {len(body)}", *headers, "", ""]
        self.answer("\r\n".join(lines).encode() + body)

    def slow(self, seconds: float) -> None:
        """Pass everything on, each piece of an answer so much later."""
        self._tell("pass", delay=seconds)

    # ---- its own thread

    def run_in_thread(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the hop's thread, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        under_way = tuple(self._under_way)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def finish(self) -> None:
        self._loop.close()

    def _tell(self, kind: str, *, delay: float = 0.0, answer: bytes = b"", word: bytes = b"") -> None:
        self.call(self._become(kind, delay, answer, word))

    async def _become(self, kind: str, delay: float, answer: bytes, word: bytes) -> None:
        before, self._kind, self._delay, self._answer, self._word = self._kind, kind, delay, answer, word
        if kind == "refuse":
            await self.close()
        elif self._server is None:
            await self.open()
        if kind == "pass" and before != "pass":  # what is half answered cannot be mended
            for task in tuple(self._under_way):
                task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._under_way.add(task)
        self.connections += 1
        try:
            await self._converse(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # that it breaks is what is being tested
        finally:
            self._under_way.discard(task)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hold a connection upstream from the first question that is passed on."""
        answering: asyncio.Task[None] | None = None
        there: asyncio.StreamWriter | None = None
        is_new = True
        try:
            while asked := await self._first(reader) if is_new else await self._next(reader, eager=there is None):
                is_new = False
                if self._word and self._word in asked:
                    await _swallow(reader)
                    return
                if self._kind != "pass":
                    await self._trouble(reader, writer)
                    if self._kind != "answer":
                        return
                    continue
                if there is None:
                    back, there = await asyncio.open_connection(*self.upstream)
                    answering = asyncio.create_task(self._pass_back(back, writer))
                if asked is not _SERVER_SPEAKS_FIRST:
                    there.write(asked)
                    await there.drain()
        finally:
            if answering is not None:
                answering.cancel()
            if there is not None:
                there.close()

    async def _first(self, reader: asyncio.StreamReader) -> bytes:
        return await self._next(reader, eager=True) if self.is_spoken_to_first else _SERVER_SPEAKS_FIRST

    async def _next(self, reader: asyncio.StreamReader, *, eager: bool) -> bytes:
        """Wait for a question; a server that speaks first, as NATS does, must be let speak."""
        if not eager or self._kind != "pass":
            return await reader.read(65536)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                return await reader.read(65536)
        return _SERVER_SPEAKS_FIRST

    async def _trouble(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        match self._kind:
            case "stall":
                await _swallow(reader)
            case "drip":
                writer.write(self._answer)
                while True:
                    await writer.drain()
                    await asyncio.sleep(0.02)
                    writer.write(b" ")
            case "cut":
                writer.write(self._answer)
                await writer.drain()
                if not self._answer:
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            case "answer":
                writer.write(self._answer)
                await writer.drain()

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while said := await reader.read(65536):
                await asyncio.sleep(self._delay)
                writer.write(said)
                await writer.drain()
        writer.close()


_SERVER_SPEAKS_FIRST: Final = b"\0"


async def _swallow(reader: asyncio.StreamReader) -> None:
    while await reader.read(65536):
        pass


@contextmanager
def hop() -> Iterator[Hop]:
    """Stand in front of a server for the length of the block; whom in front of, it is told later."""
    made = Hop()
    thread = threading.Thread(target=made.run_in_thread, name="hop")
    thread.start()
    try:
        made.call(made.open())
        yield made
    finally:
        made.call(made.close())
        made.stop()
        thread.join()
        made.finish()
