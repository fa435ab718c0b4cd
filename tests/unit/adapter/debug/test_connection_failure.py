"""Reasons of failed connections, as aiohttp raises them."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from adapter.debug.connection_failure import connection_failure
from tests.control_plane.cluster import free_port


async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()


async def failure_of(url: str) -> str:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError) as raised:
            await session.get(url, ssl=ssl.create_default_context())
    return connection_failure(raised.value)


async def refused() -> str:
    return await failure_of(f"https://127.0.0.1:{free_port()}")


async def without_tls() -> str:
    server = await asyncio.start_server(close, "127.0.0.1", 0)
    async with server:
        return await failure_of(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")


@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        pytest.param(refused, "Connection refused", id="refused"),
        pytest.param(without_tls, "the TLS handshake failed: ", id="without TLS"),
    ],
)
async def test_reason_contains_no_objects_of_the_client(fail: Callable[[], Awaitable[str]], reason: str):
    text = await fail()
    assert text.startswith(reason)
    assert "object at" not in text
    assert "Operation not permitted" not in text


def test_unknown_host_has_the_reason_of_the_resolver():
    key = ConnectionKey("steadyscale.invalid", 443, True, True, None, None, None)  # noqa: FBT003 - of aiohttp
    error = aiohttp.ClientConnectorDNSError(key, socket.gaierror(-2, "Name or service not known"))
    assert connection_failure(error) == "Name or service not known"


async def test_timeout_has_no_reason():
    await asyncio.sleep(0)
    assert connection_failure(TimeoutError()) == ""
