"""The connection of the moment, to any of several servers."""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from adapter.backends.connection.address import Address
from adapter.backends.connection.shared_connection import Shared
from adapter.backends.nats.connection import Line
from adapter.errors import BackendError, BackendUnreachable


class Lines(Shared[Line]):
    """One at a time; who does not let us connect is tried last the next time."""

    def __init__(self, addresses: Sequence[Address], new: Callable[[], Awaitable[Line]]) -> None:
        super().__init__(self._connected, Line.close, lambda line: line.is_good)
        self._addresses = deque(addresses)
        self._new = new

    async def _connected(self) -> Line:
        failure: BackendError = BackendUnreachable("not asked yet")
        for address in tuple(self._addresses):
            line = await self._new()
            try:
                await line.open(address)
            except BaseException as error:
                self._addresses.rotate(-1)
                self.let_go(line)
                if not isinstance(error, BackendUnreachable):
                    raise
                failure = error
            else:
                return line
        raise failure
