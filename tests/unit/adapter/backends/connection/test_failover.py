import asyncio

import pytest

from adapter.backends.connection.failover import Failover
from adapter.errors import BackendRejected, BackendUnreachable


class Servers:
    """Servers by name, each with its error or None, and the order of attempts."""

    def __init__(self, **errors: BaseException | None) -> None:
        self.errors = errors
        self.attempts: list[str] = []
        self.failover = Failover(errors)

    async def attempt(self, server: str) -> str:
        self.attempts.append(server)
        error = self.errors[server]
        if error is not None:
            raise error
        return server


async def test_first_reachable_server_is_used_and_preferred_the_next_time() -> None:
    servers = Servers(a=BackendUnreachable("connection refused"), b=None, c=None)

    assert [await servers.failover.run(servers.attempt) for _ in range(2)] == ["b", "b"]
    assert servers.attempts == ["a", "b", "b"]


async def test_error_of_the_last_server_is_raised_if_none_is_reachable() -> None:
    servers = Servers(a=BackendUnreachable("first"), b=BackendUnreachable("second"))

    with pytest.raises(BackendUnreachable, match="second"):
        await servers.failover.run(servers.attempt)
    servers.errors["a"] = None
    assert await servers.failover.run(servers.attempt) == "a"


@pytest.mark.parametrize("error", [BackendRejected("no"), asyncio.CancelledError()])
async def test_other_errors_are_raised_at_once_and_the_server_is_tried_last(error: BaseException) -> None:
    servers = Servers(a=error, b=None)

    with pytest.raises(type(error)):
        await servers.failover.run(servers.attempt)
    assert await servers.failover.run(servers.attempt) == "b"
    assert servers.attempts == ["a", "b"]


async def test_concurrent_failures_of_one_server_move_it_once() -> None:
    servers = Servers(a=BackendUnreachable("connection refused"), b=None, c=None)

    async def attempt(server: str) -> str:
        await asyncio.sleep(0)
        return await servers.attempt(server)

    assert await asyncio.gather(*(servers.failover.run(attempt) for _ in range(2))) == ["b", "b"]
    assert await servers.failover.run(attempt) == "b"
