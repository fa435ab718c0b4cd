"""Timeouts and limits of connections, and malformed requests."""

import asyncio
from datetime import timedelta

import pytest

from adapter.config.model import Limits
from adapter.server.connection import Connection
from adapter.server.listener import Listener
from tests.unit.adapter.served import METRIC, Served, served
from tests.waiting import GIVE_UP

TIMEOUT = timedelta(seconds=10)
DROPPED = "steadyscale_connections_dropped_total"


def listener_of(it: Served) -> Listener:
    (listener,) = it.server.listeners
    return listener


class Client:
    """A raw connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, it: Served, data: bytes) -> "Client":
        client = cls(*await asyncio.open_connection("127.0.0.1", it.port))
        client.writer.write(data)
        await client.writer.drain()
        return client

    async def read(self, limit: int = -1) -> bytes:
        data = await asyncio.wait_for(self.reader.read(limit), GIVE_UP)
        self.writer.close()
        return data

    async def is_disconnected(self) -> bool:
        try:
            return await self.read(1) == b""
        except ConnectionError:
            return True


async def wait_for_connections(it: Served, count: int) -> list[Connection]:
    while len(listener_of(it).connections) != count:  # noqa: ASYNC110 - production code needs no event for this
        await asyncio.sleep(0.001)
    return [connection for connection in listener_of(it).connections if isinstance(connection, Connection)]


async def test_connection_without_a_complete_request_is_closed_after_the_header_timeout():
    async with served(Limits(header_timeout=TIMEOUT)) as it:
        clients = [await Client.connect(it, data) for data in (b"", b"GET /apis HTTP/1.1\r\nX: ")]
        await wait_for_connections(it, 2)
        listener_of(it).check_timeouts(asyncio.get_running_loop().time() + 11)

        assert [await client.is_disconnected() for client in clients] == [True, True]
        assert it.metric(DROPPED, reason="header_timeout") == 2


async def test_header_timeout_does_not_apply_after_the_first_request():
    async with served(Limits(header_timeout=TIMEOUT)) as it:
        await it.session.get("/readyz")
        listener_of(it).check_timeouts(asyncio.get_running_loop().time() + 100)

        assert len(listener_of(it).connections) == 1
        assert it.metric(DROPPED, reason="header_timeout") == 0


@pytest.mark.parametrize("first", [b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", b""], ids=["second", "first"])
async def test_header_timeout_applies_to_every_request_from_its_first_byte(first: bytes):
    async with served(Limits(header_timeout=TIMEOUT)) as it:
        client = await Client.connect(it, first)
        if first:
            await asyncio.wait_for(client.reader.readuntil(b"ok"), GIVE_UP)
        (connection,) = await wait_for_connections(it, 1)
        client.writer.write(b"GET /readyz HT")
        while not connection.head_bytes:  # noqa: ASYNC110 - production code needs no event for this
            await asyncio.sleep(0.001)
        listener_of(it).check_timeouts(asyncio.get_running_loop().time() + 11)

        assert await client.is_disconnected()
        assert it.metric(DROPPED, reason="header_timeout") == 1


async def test_headers_that_are_too_large_together_are_rejected():
    async with served(Limits(max_header_bytes=4096)) as it:
        headers = b"".join(b"X-%d: %s\r\n" % (number, b"v" * 1000) for number in range(5))
        complete = await (await Client.connect(it, b"GET /readyz HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")).read()
        incomplete = await (await Client.connect(it, b"GET /readyz HTTP/1.1\r\nHost: x\r\n" + headers)).read()

        assert complete.startswith(b"HTTP/1.1 431 ")
        assert incomplete.startswith(b"HTTP/1.1 431 ")
        assert it.metric(DROPPED, reason="headers_too_large") == 2


async def test_large_body_does_not_count_as_headers():
    async with served(Limits(max_header_bytes=4096)) as it:
        for length in (5000, 50_000):
            head = f"POST /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
            response = await (await Client.connect(it, head.encode() + bytes(length))).read()

            assert response.startswith(b"HTTP/1.1 405 ")


@pytest.mark.parametrize("request_line", [b"GET /readyz HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c"])
async def test_upgrade_is_ignored_and_the_connection_closed(request_line: bytes):
    async with served() as it:
        response = await (await Client.connect(it, request_line + b"\r\nHost: x\r\n\r\n" + bytes(1000))).read()

        assert response.startswith(b"HTTP/1.1 200 ")


async def test_expectation_of_100_continue_gets_the_response():
    async with served() as it:
        head = b"GET /readyz HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
        response = await (await Client.connect(it, head)).read(8192)

        assert response.startswith(b"HTTP/1.1 200 ")


async def test_client_that_does_not_read_its_responses_is_disconnected():
    async with served(Limits(header_timeout=TIMEOUT)) as it:
        client = await Client.connect(it, b"")
        assert isinstance(client.writer.transport, asyncio.Transport)
        client.writer.transport.pause_reading()
        requests = b"GET /openapi/v2 HTTP/1.1\r\nHost: x\r\n\r\n" * 64
        (connection,) = await wait_for_connections(it, 1)
        assert connection.transport is not None
        while not connection.transport.get_write_buffer_size():
            client.writer.write(requests)
            await asyncio.sleep(0.001)
        now = asyncio.get_running_loop().time()
        listener_of(it).check_timeouts(now)
        listener_of(it).check_timeouts(now + 11)

        assert it.metric(DROPPED, reason="response_not_read") == 1
        client.writer.transport.abort()


async def test_connections_above_the_maximum_are_closed():
    async with served(Limits(max_connections=1)) as it:
        first = await Client.connect(it, b"")
        await wait_for_connections(it, 1)
        second = await Client.connect(it, b"GET /readyz HTTP/1.1\r\n\r\n")

        assert await second.is_disconnected()
        assert it.metric(DROPPED, reason="too_many_connections") == 1
        first.writer.close()


async def test_authenticated_connection_is_not_displaced_by_unauthenticated_ones():
    async with served(Limits(max_connections=2)) as it:
        it.backend.may_respond.set()
        assert (await it.session.get(METRIC)).status == 200
        others = [await Client.connect(it, b"") for _ in range(5)]
        assert (await asyncio.gather(*(other.is_disconnected() for other in others[1:]))) == [True] * 4

        assert (await it.session.get(METRIC)).status == 200
        assert it.metric("steadyscale_connections_dropped_total", reason="too_many_connections") == 4
        others[0].writer.close()


async def test_malformed_request_gets_a_status_and_is_disconnected():
    async with served() as it:
        response = await (await Client.connect(it, b"GARBAGE\r\n\r\n")).read()

        assert response.startswith(b"HTTP/1.0 400 ")
        assert b'"reason":"BadRequest"' in response
        assert b"malformed HTTP request" in response
        assert b"\r\nServer: steadyscale\r\n" in response
        assert b"Traceback" not in response
        assert it.metric("steadyscale_requests_total", endpoint="unparsed", code="400") == 1


async def test_error_outside_the_handler_becomes_a_status(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    async with served() as it:
        monkeypatch.setattr(it.server._accounting, "record", None)  # as if recording failed
        response = await it.session.get("/readyz")

        assert (response.status, (await response.json())["reason"]) == (500, "InternalError")
        assert it.metric("steadyscale_requests_total", endpoint="failed", code="500") == 1
        assert "unexpected error in a request" in caplog.text


async def test_response_does_not_wait_for_the_body_of_a_get():
    async with served() as it:
        it.backend.may_respond.set()
        head = f"GET {METRIC} HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n"
        response = await (await Client.connect(it, head.encode())).read()

        assert response.startswith(b"HTTP/1.1 200 ")


async def test_client_that_sends_a_large_body_before_reading_gets_the_response():
    async with served() as it:
        length = 8 * 1024 * 1024
        head = f"POST {METRIC} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
        client = await Client.connect(it, head.encode())
        for _ in range(length // 65536):
            client.writer.write(bytes(65536))
            await client.writer.drain()

        assert (await client.read(4096)).startswith(b"HTTP/1.1 405 ")
