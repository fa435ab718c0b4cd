"""Few connections, kept while they are good. A query that nobody waits for any more is cancelled at the server."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

import asyncpg

from adapter.backends.connection.secret_file import SecretFile
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.postgresql import errors
from adapter.backends.postgresql.settings import PostgreSql
from adapter.backends.settings import Tls
from adapter.errors import BackendError, BadQuery

_GOODBYE: Final = 1.0
"""Seconds to cancel what is under way and to take leave; then the connection is cut."""

_END: Final = "ROLLBACK; SELECT pg_advisory_unlock_all()"
"""Whatever a query did to its session is undone: settings with the transaction, and locks."""


class _Shown(NamedTuple):
    """What a connection is made with; one that was made with something else is not used any more."""

    password: str
    tls: ssl.SSLContext | None


class Connections:
    """The connections to one database."""

    def __init__(self, settings: PostgreSql) -> None:
        self._settings = settings
        self._mode = settings.ssl_mode
        self._tls = TlsFiles(
            Tls(
                ca_file=settings.tls.ca_file,
                cert_file=settings.tls.cert_file,
                key_file=settings.tls.key_file,
                insecure_skip_verify=self._mode == "require",
            )
        )
        self.password = SecretFile(settings.password_file, "passwordFile") if settings.password_file else None
        self._room = asyncio.Semaphore(settings.connections)
        self._idle: list[tuple[asyncpg.Connection, _Shown]] = []
        self._leaving: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def reading(self, ends: float) -> AsyncIterator[asyncpg.Connection]:
        """Give a connection in a transaction that can only read, and ends at this time of the loop.

        Nothing that is raised inside is translated; what is raised while connecting is.
        """
        await self._room.acquire()
        connection: asyncpg.Connection | None = None
        is_good = False
        try:
            shown = await asyncio.to_thread(self._show)
            connection = await self._begun(shown, ends)
            try:
                yield connection
            except (asyncpg.PostgresError, BadQuery):  # the server answered: the next query may do better
                is_good = await _ended(connection)
                raise
            is_good = await _ended(connection)
        finally:
            if connection is not None and is_good:
                self._idle.append((connection, shown))
                self._room.release()
            else:
                self._leave(connection)

    async def aclose(self) -> None:
        """Take leave of the server."""
        for connection, _ in self._idle:
            self._leaving.add(asyncio.create_task(_close(connection)))
        self._idle.clear()
        await asyncio.gather(*self._leaving)

    async def _begun(self, shown: _Shown, ends: float) -> asyncpg.Connection:
        """Begin in a connection that is idle and still good, or in a new one.

        That an idle one is broken is seen only when it is used. No question was asked by then, so the next one is not
        a second try.
        """
        while self._idle:
            connection, before = self._idle.pop()
            if before != shown or connection.is_closed():
                connection.terminate()
                continue
            try:
                await self._begin(connection, ends)
            except BackendError:
                continue
            return connection
        connection = await self._connected(shown)
        await self._begin(connection, ends)
        return connection

    async def _begin(self, connection: asyncpg.Connection, ends: float) -> None:
        left = max(1, round((ends - asyncio.get_running_loop().time()) * 1000))
        try:
            await connection.execute(f"BEGIN READ ONLY; SET LOCAL statement_timeout = {left}")
        except errors.LIBRARY as error:
            connection.terminate()
            raise errors.of_exception(error) from None
        except BaseException:
            connection.terminate()  # nothing is under way at the server that would take long
            raise

    async def _connected(self, shown: _Shown) -> asyncpg.Connection:
        try:
            return await asyncpg.connect(**self._arguments(shown))
        except errors.LIBRARY as error:
            raise errors.of_exception(error) from None

    def _arguments(self, shown: _Shown) -> dict[str, Any]:
        """Say everything, so that nothing is taken from the environment."""
        return {
            "host": self._settings.host,
            "port": self._settings.port,
            "database": self._settings.database,
            "user": self._settings.username,
            "password": shown.password,
            "ssl": shown.tls or False,
            "direct_tls": False,
            "target_session_attrs": "any",
            "timeout": None,  # the guard's deadline is the only one
            "statement_cache_size": 0,  # nothing is left in a session that a pooler may give to somebody else
            "server_settings": {"application_name": "steadyscale"},
        }

    def _show(self) -> _Shown:
        """Read what we show; in a thread, because secrets and certificates are files."""
        password = self.password.read_now() if self.password is not None else ""
        if self._mode == "disable":
            return _Shown(password, None)
        context = self._tls.context()
        if self._mode == "verify-ca":
            context.check_hostname = False
        return _Shown(password, context)

    def _leave(self, connection: asyncpg.Connection | None) -> None:
        """Let go of a connection in which something went wrong; its place is free when it is gone."""
        if connection is None:
            self._room.release()
            return
        leaving = asyncio.create_task(_close(connection), name="goodbye")
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        leaving.add_done_callback(lambda _: self._room.release())


async def _ended(connection: asyncpg.Connection) -> bool:
    """End the transaction; say whether the connection can be used again."""
    try:
        await connection.execute(_END)
    except errors.LIBRARY:
        return False
    return True


async def _close(connection: asyncpg.Connection) -> None:
    """Wait until the server has heard that the query is cancelled, and close; cut what does not listen."""
    with contextlib.suppress(*errors.LIBRARY):
        await connection.close(timeout=_GOODBYE)
    connection.terminate()
