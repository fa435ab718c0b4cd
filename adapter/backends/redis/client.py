"""Connections to one node: few, kept while they are good, thrown away after anything went wrong on them.

The library's own pool and client are not used: they connect and ask again by themselves.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, TypeAlias

from redis.asyncio.connection import Connection
from redis.exceptions import ResponseError

from adapter.backends.connection.address import Address
from adapter.backends.connection.secret_file import SecretFile
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.redis.errors import of_exception
from adapter.errors import BackendError

Command: TypeAlias = tuple[str | bytes | int, ...]
Said: TypeAlias = Any
"""What Redis answers: an int, bytes, None, a list of them, or an error."""

_ROUNDS: Final = 2
"""Of the loop, until it has heard of what came in before: that a connection was ended from there."""

_RESP2: Final = 2  # understood by whatever calls itself Redis


class Login(NamedTuple):
    """How connections are made, whatever they lead to."""

    username: str
    password: SecretFile | None
    database: int
    tls: TlsFiles | None
    server_name: str


class _Shown(NamedTuple):
    password: str | None
    tls: ssl.SSLContext | None


class _Encrypted(Connection):
    """A connection with a TLS context of ours, whose files were read in a thread."""

    def __init__(self, *, context: ssl.SSLContext, server_name: str, **more: Any) -> None:  # noqa: ANN401 - the library's
        super().__init__(**more)
        self._context, self._server_name = context, server_name

    def _connection_arguments(self) -> dict[str, Any]:
        named = {"server_hostname": self._server_name} if self._server_name else {}
        return {"host": self.host, "port": self.port, "ssl": self._context, **named}


class Wire:
    """Commands to one node, and its answers."""

    def __init__(self, where: Callable[[], Awaitable[Address]], login: Login, connections: int) -> None:
        self._where = where
        """Asked before every new connection: a node can move."""

        self._login = login
        self._idle: list[Connection] = []
        self._free = asyncio.Semaphore(connections)

    async def ask(self, *commands: Command) -> list[Said]:
        """Send commands in one go and return the answer to each; raise the first error that is an answer."""
        answers = await self.ask_each(*commands)
        for answer in answers:
            if isinstance(answer, Exception):
                raise of_exception(answer) from None
        return answers

    async def ask_each(self, *commands: Command) -> list[Said]:
        """Do the same, with errors among the answers."""
        try:
            async with self._free, self._one() as connection:
                await connection.send_packed_command(connection.pack_commands(commands))
                return [await _answer(connection) for _ in commands]
        except BackendError:
            raise
        except Exception as error:  # noqa: BLE001 - the one door: whatever it is, it is an answer that makes no sense
            raise of_exception(error) from None

    async def aclose(self) -> None:
        """Let go of connections; nobody uses them any more."""
        while self._idle:
            await _dropped(self._idle.pop())

    @asynccontextmanager
    async def _one(self) -> AsyncIterator[Connection]:
        """Lend a connection. One on which something went wrong may still have an answer under way, to someone else."""
        connection = await self._kept() or await self._made()
        try:
            yield connection
        except BaseException:
            await _dropped(connection)
            await self.aclose()  # the others lead to the same place, and may be as dead
            raise
        self._idle.append(connection)

    async def _kept(self) -> Connection | None:
        for _ in range(_ROUNDS if self._idle else 0):
            await asyncio.sleep(0)
        while self._idle:
            connection = self._idle.pop()
            if connection.is_connected and not await connection.can_read():
                return connection
            await _dropped(connection)  # it was ended from there, or says what nobody asked
        return None

    async def _made(self) -> Connection:
        host, port = await self._where()
        shown = await asyncio.to_thread(self._show)
        more: dict[str, Any] = {
            "host": host,
            "port": port,
            "db": self._login.database,
            "username": self._login.username or None,
            "password": shown.password,
            "protocol": _RESP2,
            "socket_timeout": None,  # the guard's deadline is the only one
            "socket_connect_timeout": None,
            "driver_info": None,
        }
        if shown.tls is None:
            made = Connection(**more)
        else:
            made = _Encrypted(context=shown.tls, server_name=self._login.server_name, **more)
        try:
            await made.connect()  # type: ignore[no-untyped-call]
        except BaseException:
            await _dropped(made)
            raise
        return made

    def _show(self) -> _Shown:
        """Read what we show; in a thread, because secrets and certificates are files."""
        login = self._login
        return _Shown(
            login.password.read_now() if login.password else None,
            login.tls.context() if login.tls else None,
        )


async def _answer(connection: Connection) -> Said:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error


async def _dropped(connection: Connection) -> None:
    await connection.disconnect(nowait=True)
