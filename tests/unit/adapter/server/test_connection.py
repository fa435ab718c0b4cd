"""Clients that keep us waiting."""

import asyncio
from datetime import timedelta

import pytest

from adapter.config.model import Limits
from adapter.server.connection import Listener
from tests.unit.adapter.served import METRIC, Served, served

PATIENCE = timedelta(seconds=10)


def listener_of(it: Served) -> Listener:
    (listener,) = it.server.listeners
    return listener


async def connect(it: Served, said: bytes) -> asyncio.StreamReader:
    reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
    reader.keep = writer  # type: ignore[attr-defined]  # or it would be closed with the garbage
    writer.write(said)
    await writer.drain()
    return reader


async def settled(it: Served, connections: int) -> None:
    """Wait until the server has seen this many connections."""
    while len(listener_of(it).connections) != connections:  # noqa: ASYNC110  (the server is not to know of this test)
        await asyncio.sleep(0.001)


async def hung_up(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), 5) == b""
    except ConnectionError:
        return True
    finally:
        reader.keep.close()  # type: ignore[attr-defined]


async def test_who_says_nothing_or_never_finishes_is_dropped():
    async with served(Limits(header_timeout=PATIENCE)) as it:
        readers = [await connect(it, said) for said in (b"", b"GET /apis HTTP/1.1\r\nX: ")]
        await settled(it, 2)
        listener_of(it).look(asyncio.get_running_loop().time() + 11)

        assert [await hung_up(reader) for reader in readers] == [True, True]
        assert it.figure("steadyscale_connections_dropped_total", why="no request") == 2


async def test_who_has_asked_before_may_be_idle_for_longer():
    async with served(Limits(header_timeout=PATIENCE)) as it:
        await it.session.get("/readyz")
        listener_of(it).look(asyncio.get_running_loop().time() + 100)

        assert len(listener_of(it).connections) == 1
        assert it.figure("steadyscale_connections_dropped_total", why="no request") == 0


async def test_who_does_not_read_the_answer_is_dropped():
    async with served(Limits(header_timeout=PATIENCE)) as it:
        reader = await connect(it, b"")
        reader.keep.transport.pause_reading()  # type: ignore[attr-defined]
        asked = b"GET /openapi/v2 HTTP/1.1\r\nHost: x\r\n\r\n" * 64
        (connection,) = await _one(it)
        while not connection.transport.get_write_buffer_size():
            reader.keep.write(asked)  # type: ignore[attr-defined]
            await asyncio.sleep(0.001)
        now = asyncio.get_running_loop().time()
        listener_of(it).look(now)
        listener_of(it).look(now + 11)

        assert it.figure("steadyscale_connections_dropped_total", why="answer unread") == 1
        reader.keep.transport.abort()  # type: ignore[attr-defined]


async def _one(it: Served) -> list:
    await settled(it, 1)
    return listener_of(it).connections


async def test_more_connections_than_may_be_are_closed():
    async with served(Limits(connections=1)) as it:
        first = await connect(it, b"")
        await settled(it, 1)
        second = await connect(it, b"GET /readyz HTTP/1.1\r\n\r\n")

        assert await hung_up(second)
        assert it.figure("steadyscale_connections_dropped_total", why="too many") == 1
        first.keep.close()  # type: ignore[attr-defined]


async def test_what_is_not_http_gets_a_status_and_is_hung_up_on():
    async with served() as it:
        reader = await connect(it, b"GARBAGE\r\n\r\n")
        said = await asyncio.wait_for(reader.read(), 5)
        reader.keep.close()  # type: ignore[attr-defined]

        assert said.startswith(b"HTTP/1.0 400 ")
        assert b'"reason":"BadRequest"' in said
        assert b"\r\nServer: steadyscale\r\n" in said
        assert b"Traceback" not in said
        assert it.figure("steadyscale_requests_total", endpoint="unparsed", code="400") == 1


async def test_even_a_failure_outside_the_walk_is_a_status(caplog: pytest.LogCaptureFixture):
    async with served() as it:
        it.server._journal.add = None  # as if the account could not be kept
        answer = await it.session.get("/readyz")

        assert (answer.status, (await answer.json())["reason"]) == (500, "InternalError")
        assert it.figure("steadyscale_requests_total", endpoint="failed", code="500") == 1
        assert "nobody foresaw" in caplog.text


async def test_a_body_on_a_get_is_not_waited_for():
    async with served() as it:
        it.backend.may_answer.set()
        reader = await connect(it, f"GET {METRIC} HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n".encode())
        said = await asyncio.wait_for(reader.read(), 5)
        reader.keep.close()  # type: ignore[attr-defined]

        assert said.startswith(b"HTTP/1.1 200 ")


async def test_who_sends_a_large_body_first_and_then_reads_still_gets_the_answer():
    async with served() as it:
        length = 8 * 1024 * 1024
        reader = await connect(it, f"POST {METRIC} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
        for _ in range(length // 65536):
            reader.keep.write(bytes(65536))  # type: ignore[attr-defined]
            await reader.keep.drain()  # type: ignore[attr-defined]
        said = await asyncio.wait_for(reader.read(4096), 5)
        reader.keep.close()  # type: ignore[attr-defined]

        assert said.startswith(b"HTTP/1.1 405 ")
