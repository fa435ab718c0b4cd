"""The PostgreSQL backend: runs each query in a read-only transaction with a statement timeout."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from adapter.backends.parameters import parameters
from adapter.backends.postgresql.client import PostgreSqlConnectionPool
from adapter.backends.postgresql.parse import find_columns, samples
from adapter.backends.postgresql.settings import PostgreSql, PostgreSqlParameters
from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.errors import BackendRejected
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING_DEADLINE: Final = timedelta(seconds=5)
_UNNAMED: Final = ""


class PostgreSqlBackend:
    """A client of one database."""

    def __init__(self, name: str, settings: PostgreSql, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._max_rows = settings.max_rows
        self._clock = clock
        self._pool = PostgreSqlConnectionPool(settings)
        password = self._pool.password
        self._protected = ProtectedCall(settings.circuit_breaker, clock, (password,) if password is not None else ())

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        wanted, now = parameters(query, PostgreSqlParameters), self._clock()
        end = asyncio.get_running_loop().time() + deadline.total_seconds()
        return await self._protected.run(
            query.text, deadline, lambda: self._fetch_rows(wanted, now, end), namespace=query.namespace
        )

    async def ping(self) -> None:
        end = asyncio.get_running_loop().time() + _PING_DEADLINE.total_seconds()

        async def operation() -> None:
            async with self._pool.read_only_transaction(end):
                pass

        await self._protected.run("ping", _PING_DEADLINE, operation)

    async def aclose(self) -> None:
        await self._protected.aclose()
        await self._pool.aclose()

    async def _fetch_rows(self, wanted: PostgreSqlParameters, now: datetime, end: float) -> tuple[RawSample, ...]:
        async with self._pool.read_only_transaction(end) as connection:
            # A prepared statement is a single statement, so the query cannot end the transaction with a second one.
            statement = await connection.prepare(wanted.query, name=_UNNAMED)
            columns = find_columns([attribute.name for attribute in statement.get_attributes()], wanted)
            cursor = await statement.cursor()
            rows = await cursor.fetch(self._max_rows + 1)
        if len(rows) > self._max_rows:
            raise BackendRejected("the query returns more rows than maxRows allows")
        return tuple(samples(rows, columns, now))
