"""A connection pool for one Redis node, on the connections of redis-py.

The pool of redis-py is not used: a cancellation while it takes a connection back would occupy its slot forever.
A connection is closed after any failure, because a late reply to an earlier command could still arrive on it.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, TypeAlias

from redis.asyncio.connection import Connection
from redis.exceptions import ResponseError

from adapter.backends.connection.address import Address
from adapter.backends.connection.secret_file import SecretFile
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.redis.errors import from_exception

Command: TypeAlias = tuple[str | bytes | int, ...]
Reply: TypeAlias = Any  # an int, bytes, None, a list of these, or an error
_LOOP_CYCLES: Final = 2  # event loop cycles after which a connection that the server closed is known to be closed
_RESP2: Final = 2  # supported by every server that is compatible with Redis


class RedisLogin(NamedTuple):
    """How to connect to a node."""

    username: str
    password: SecretFile | None
    database: int
    tls: TlsFiles | None
    server_name: str


class RedisConnection(Connection):
    """A connection with a given TLS context. redis-py would read the certificate files in the event loop."""

    def __init__(self, *, context: ssl.SSLContext | None, server_name: str, **options: Any) -> None:  # noqa: ANN401
        super().__init__(**options)
        self._context, self._server_name = context, server_name

    def _connection_arguments(self) -> dict[str, Any]:
        return {**super()._connection_arguments(), "ssl": self._context, "server_hostname": self._server_name or None}


class RedisConnectionPool:
    """Connections to one node."""

    def __init__(self, address: Address, login: RedisLogin, max_connections: int) -> None:
        self._address, self._login = address, login
        self._idle: list[Connection] = []
        self._slots = asyncio.Semaphore(max_connections)

    async def masters(self) -> "Sequence[RedisConnectionPool]":
        """Return the nodes that together have all keys."""
        return (self,)

    async def resolve(self) -> Address:
        """Return the address for a new connection."""
        return self._address

    async def execute(self, *commands: Command, key: bytes = b"") -> list[Reply]:  # noqa: ARG002 - has all keys
        """Send commands in one pipeline and return the reply to each; error replies are returned, not raised."""
        try:
            async with self._slots, self._acquire() as connection:
                await connection.send_packed_command(connection.pack_commands(commands))
                return [await _read_reply(connection) for _ in commands]
        except Exception as error:  # noqa: BLE001 - redis-py raises many types; all of them are translated here
            raise from_exception(error) from None

    async def execute_one(self, *command: str | bytes | int) -> Reply:
        """Send one command and return the reply; raise ``BackendError`` if it is an error."""
        replies = await self.execute(command)
        raise_error_reply(replies)
        return replies[0]

    async def aclose(self) -> None:
        """Close the idle connections; no connection may be in use."""
        while self._idle:
            await self._idle.pop().disconnect(nowait=True)

    @asynccontextmanager
    async def _acquire(self) -> AsyncIterator[Connection]:
        connection = await self._reuse() or await self._connect()
        try:
            yield connection
        except BaseException:
            await connection.disconnect(nowait=True)
            await self.aclose()  # idle connections lead to the same node and may be broken, too
            raise
        self._idle.append(connection)

    async def _reuse(self) -> Connection | None:
        for _ in range(_LOOP_CYCLES if self._idle else 0):
            await asyncio.sleep(0)
        while self._idle:
            connection = self._idle.pop()
            if connection.is_connected and not await connection.can_read():
                return connection
            await connection.disconnect(nowait=True)  # closed by the server, or with unexpected data
        return None

    async def _connect(self) -> Connection:
        host, port = await self.resolve()
        login = self._login
        connection = RedisConnection(
            host=host,
            port=port,
            db=login.database,
            username=login.username or None,
            password=await login.password.read() if login.password else None,
            context=await asyncio.to_thread(login.tls.context) if login.tls else None,
            server_name=login.server_name,
            protocol=_RESP2,
            socket_timeout=None,  # ProtectedCall applies the deadline
            socket_connect_timeout=None,
            driver_info=None,
        )
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
        except BaseException as error:
            await connection.disconnect(nowait=True)
            if isinstance(error, Exception):
                raise from_exception(error, host) from None
            raise
        return connection


def raise_error_reply(replies: Iterable[Reply]) -> None:
    for reply in replies:
        if isinstance(reply, Exception):
            raise from_exception(reply) from None


async def _read_reply(connection: Connection) -> Reply:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error
