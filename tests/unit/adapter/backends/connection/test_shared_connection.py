"""Sharing, replacing and closing of a connection."""

import asyncio

import pytest

from adapter.backends.connection.shared_connection import SharedConnection
from adapter.errors import BackendRejected, BackendUnreachable


class FakeConnection:
    def __init__(self, number: int) -> None:
        self.number, self.is_usable, self.is_closed = number, True, False

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.is_closed = True


class FakeServer:
    """Opens connections, except for the first ``failures`` attempts."""

    def __init__(self) -> None:
        self.connections: list[FakeConnection] = []
        self.failures = 0
        self.shared = SharedConnection(self.open, FakeConnection.close, lambda connection: connection.is_usable)

    async def open(self) -> FakeConnection:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise BackendUnreachable("connection refused")
        self.connections.append(FakeConnection(len(self.connections)))
        return self.connections[-1]

    async def used_connection(self) -> int:
        async with self.shared.acquire() as connection:
            await asyncio.sleep(0)
            return connection.number


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


async def test_concurrent_users_share_one_connection(server: FakeServer) -> None:
    assert await asyncio.gather(*(server.used_connection() for _ in range(20))) == [0] * 20
    await server.shared.aclose()
    assert [connection.is_closed for connection in server.connections] == [True]


async def test_unusable_connection_is_replaced_before_its_next_use(server: FakeServer) -> None:
    assert await server.used_connection() == 0
    server.connections[0].is_usable = False
    assert await server.used_connection() == 1
    await server.shared.aclose()
    assert [connection.is_closed for connection in server.connections] == [True, True]


@pytest.mark.parametrize("error", [BackendUnreachable("connection lost"), asyncio.CancelledError(), ValueError()])
async def test_connection_is_replaced_after_a_use_without_response_and_closed_after_its_last_use(
    server: FakeServer, error: BaseException
) -> None:
    async with server.shared.acquire() as connection:
        with pytest.raises(type(error)):
            async with server.shared.acquire():
                raise error
        assert await server.used_connection() == 1
        assert not connection.is_closed
    await server.shared.aclose()
    assert [connection.is_closed for connection in server.connections] == [True, True]


async def test_connection_is_kept_after_an_error_response(server: FakeServer) -> None:
    with pytest.raises(BackendRejected):
        async with server.shared.acquire():
            raise BackendRejected("no")
    assert await server.used_connection() == 0
    await server.shared.aclose()


async def test_next_user_connects_after_a_failed_attempt(server: FakeServer) -> None:
    server.failures = 2
    results = await asyncio.gather(*(server.used_connection() for _ in range(4)), return_exceptions=True)
    assert [isinstance(result, BackendUnreachable) for result in results] == [True, True, False, False]
    await server.shared.aclose()
