"""A connection pool for one PostgreSQL database, on asyncpg.

asyncpg's own pool is not used: this one hands out connections inside a read-only transaction, does not reuse a
connection after the password or a certificate changed, and cancels an abandoned query on the server.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

import asyncpg
from msgspec.structs import asdict

from adapter.backends.connection.secret_file import SecretFile
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.postgresql import errors
from adapter.backends.postgresql.settings import PostgreSql
from adapter.backends.settings import Tls
from adapter.errors import BadQuery

_CLOSE_TIMEOUT: Final = (
    1.0  # seconds to cancel a running query and to close the connection, before the socket is closed
)
_END_TRANSACTION: Final = "ROLLBACK; SELECT pg_advisory_unlock_all()"
"""Undoes everything that a query may have changed in its session: settings and advisory locks."""


class _Credentials(NamedTuple):
    """Password and TLS context of a connection."""

    password: str
    tls: ssl.SSLContext | None


class PostgreSqlConnectionPool:
    """Connections to one database."""

    def __init__(self, settings: PostgreSql) -> None:
        self._settings = settings
        self._tls = TlsFiles(Tls(**asdict(settings.tls), insecure_skip_verify=settings.ssl_mode == "require"))
        self.password = SecretFile(settings.password_file, "passwordFile") if settings.password_file else None
        self._slots = asyncio.Semaphore(settings.max_connections)
        self._idle: list[tuple[asyncpg.Connection, _Credentials]] = []
        self._closing: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def read_only_transaction(self, end: float) -> AsyncIterator[asyncpg.Connection]:
        """Return a connection in a read-only transaction that the server aborts at ``end``, a time of the event loop.

        Exceptions of asyncpg in the block are raised as ``BackendError``.
        """
        await self._slots.acquire()
        connection: asyncpg.Connection | None = None
        is_reusable = False
        try:
            credentials = await asyncio.to_thread(self._read_credentials)
            connection = await self._begin_transaction(credentials, end)
            try:
                yield connection
            except (asyncpg.PostgresError, BadQuery):  # an error in the query does not affect the connection
                is_reusable = await _end_transaction(connection)
                raise
            is_reusable = await _end_transaction(connection)
        except errors.ASYNCPG_ERRORS as error:
            raise errors.from_exception(error, self._settings.host) from None
        finally:
            if connection is not None and is_reusable:
                self._idle.append((connection, credentials))
                self._slots.release()
            else:
                self._close_in_background(connection)

    async def aclose(self) -> None:
        for connection, _ in self._idle:
            self._closing.add(asyncio.create_task(_close(connection)))
        self._idle.clear()
        await asyncio.gather(*self._closing)

    async def _begin_transaction(self, credentials: _Credentials, end: float) -> asyncpg.Connection:
        """Begin a transaction on an idle connection, or on a new one if no idle connection works.

        A broken connection is only detected when it is used. The query has not been sent by then, so using another
        connection is not a retry of the query.
        """
        while self._idle:
            connection, used_credentials = self._idle.pop()
            if used_credentials != credentials or connection.is_closed():
                connection.terminate()
                continue
            with contextlib.suppress(*errors.ASYNCPG_ERRORS):
                await _begin(connection, end)
                return connection
        connection = await asyncpg.connect(  # with all arguments, so that asyncpg takes none from the environment
            host=self._settings.host,
            port=self._settings.port,
            database=self._settings.database,
            user=self._settings.username,
            password=credentials.password,
            ssl=credentials.tls or False,
            direct_tls=False,
            target_session_attrs="any",
            timeout=None,  # ProtectedCall applies the deadline
            statement_cache_size=0,  # connection poolers such as PgBouncer do not support prepared statements
            server_settings={"application_name": "steadyscale"},
        )
        await _begin(connection, end)
        return connection

    def _read_credentials(self) -> _Credentials:
        password = self.password.read_sync() if self.password is not None else ""
        if self._settings.ssl_mode == "disable":
            return _Credentials(password, None)
        context = self._tls.context()
        if self._settings.ssl_mode == "verify-ca":
            context.check_hostname = False
        return _Credentials(password, context)

    def _close_in_background(self, connection: asyncpg.Connection | None) -> None:
        """Close a connection that cannot be reused, and release its slot when it is closed."""
        if connection is None:
            self._slots.release()
            return
        task = asyncio.create_task(_close(connection), name="close PostgreSQL connection")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        task.add_done_callback(lambda _: self._slots.release())


async def _begin(connection: asyncpg.Connection, end: float) -> None:
    timeout_ms = max(1, round((end - asyncio.get_running_loop().time()) * 1000))
    try:
        await connection.execute(f"BEGIN READ ONLY; SET LOCAL statement_timeout = {timeout_ms}")
    except BaseException:
        connection.terminate()  # no query is running yet that would have to be cancelled
        raise


async def _end_transaction(connection: asyncpg.Connection) -> bool:
    """End the transaction and return whether the connection can be reused."""
    try:
        await connection.execute(_END_TRANSACTION)
    except errors.ASYNCPG_ERRORS:
        return False
    return True


async def _close(connection: asyncpg.Connection) -> None:
    """Close a connection, which cancels its query on the server; close the socket if the server does not respond."""
    with contextlib.suppress(*errors.ASYNCPG_ERRORS):
        await connection.close(timeout=_CLOSE_TIMEOUT)
    connection.terminate()
