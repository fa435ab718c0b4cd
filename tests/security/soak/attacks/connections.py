"""Connections that take memory or time without a complete request."""

import asyncio
import ssl
from contextlib import suppress

from tests.security.soak.api import METRICS
from tests.security.soak.attacks.attacker import Attacker


async def bare_connection(attacker: Attacker) -> str:
    """Open a TCP connection and send nothing until the server closes it."""
    reader, writer = await attacker.connect()
    try:
        async with asyncio.timeout(attacker.random.uniform(5, 50)):
            await reader.read(1)
            return "closed by the server"
    except TimeoutError:
        return "closed by the attacker"
    finally:
        await _close(writer)


async def half_handshake(attacker: Attacker) -> str:
    """Send a part of a TLS handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = attacker.unverified.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    hello = outgoing.read()
    reader, writer = await attacker.connect()
    try:
        writer.write(hello[: attacker.random.choice([1, 5, len(hello) // 2, len(hello)])])
        await writer.drain()
        async with asyncio.timeout(40):
            while await reader.read(65536):
                pass
        return "closed by the server"
    finally:
        await _close(writer)


def _request(attacker: Attacker) -> bytes:
    return f"GET {METRICS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {attacker.tenant().token}\r\n\r\n".encode()


async def slow_second_request(attacker: Attacker) -> str:
    """Send one complete request and then one byte per second of the next."""
    reader, writer = await attacker.connect(tls=True)
    first = _request(attacker)
    try:
        writer.write(first)
        await writer.drain()
        await reader.read(65536)
        for byte in first[:45]:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(1)
            if reader.at_eof():
                return "closed by the server"
        return "closed by the attacker"
    finally:
        await _close(writer)


async def unread_response(attacker: Attacker) -> str:
    """Send many requests on one connection and read no response."""
    reader, writer = await attacker.connect(tls=True)
    request = _request(attacker)
    try:
        async with asyncio.timeout(15):
            for _ in range(2_000):
                writer.write(request)
                await writer.drain()
            await asyncio.sleep(10)
    except TimeoutError:
        return "blocked by the server"
    finally:
        await _close(writer)
    return "closed by the server" if reader.at_eof() else "closed by the attacker"


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(OSError, ssl.SSLError):
        await writer.wait_closed()
