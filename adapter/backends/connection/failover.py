"""Failover between equivalent servers, such as the seeds of a cluster."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

from adapter.errors import BackendUnreachable

S = TypeVar("S")
R = TypeVar("R")


class Failover(Generic[S]):
    """Servers of which any can handle a request. A server that failed is tried last the next time."""

    def __init__(self, servers: Iterable[S]) -> None:
        self._servers = deque(servers)

    async def run(self, operation: Callable[[S], Awaitable[R]]) -> R:
        """Return the result from the first reachable server; raise the last error if none is reachable."""
        failure = BackendUnreachable("no server is configured")
        for server in tuple(self._servers):
            try:
                return await operation(server)
            except BaseException as error:  # including the cancellation of a request to a stalled server
                if self._servers[0] is server:  # else a concurrent request has moved it already
                    self._servers.rotate(-1)
                if not isinstance(error, BackendUnreachable):
                    raise
                failure = error
        raise failure
