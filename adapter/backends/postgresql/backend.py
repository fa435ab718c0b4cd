"""The PostgreSQL backend: one query for each question, in a transaction that can only read and ends by itself."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, TypeVar

from adapter.backends.parameters import parameters
from adapter.backends.postgresql import errors
from adapter.backends.postgresql.client import Connections
from adapter.backends.postgresql.parse import columns, samples
from adapter.backends.postgresql.settings import PostgreSql, PostgreSqlParameters
from adapter.backends.resilience.protected_call import Guard
from adapter.errors import BackendRejected
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

T = TypeVar("T")
_PING: Final = timedelta(seconds=5)
_UNNAMED: Final = ""


class PostgreSqlBackend:
    """A client of one database."""

    def __init__(self, name: str, settings: PostgreSql, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._most = settings.max_rows
        self._clock = clock
        self._connections = Connections(settings)
        password = self._connections.password
        self._guard = Guard(settings.breaker, clock, (password,) if password is not None else ())

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return a series for each row."""
        asked, now = parameters(query, PostgreSqlParameters), self._clock()
        ends = asyncio.get_running_loop().time() + deadline.total_seconds()
        return await self._guard.ask(query.text, deadline, lambda: self._rows(asked, now, ends))

    async def ping(self) -> None:
        """Begin a transaction, and end it."""
        ends = asyncio.get_running_loop().time() + _PING.total_seconds()

        async def ask() -> None:
            try:
                async with self._connections.reading(ends):
                    pass
            except errors.LIBRARY as error:
                raise errors.of_exception(error) from None

        await self._guard.ask("ping", _PING, ask)

    async def aclose(self) -> None:
        """End what is under way, then let go of connections."""
        await self._guard.aclose()
        await self._connections.aclose()

    async def _rows(self, asked: PostgreSqlParameters, now: datetime, ends: float) -> tuple[RawSample, ...]:
        try:
            async with self._connections.reading(ends) as connection:
                # A statement that is prepared is a single one: nothing can follow that would end the transaction.
                statement = await connection.prepare(asked.query, name=_UNNAMED)
                where = columns([each.name for each in statement.get_attributes()], asked)
                cursor = await statement.cursor()
                rows = await cursor.fetch(self._most + 1)
        except errors.LIBRARY as error:
            raise errors.of_exception(error) from None
        if len(rows) > self._most:
            raise BackendRejected("the query finds more rows than maxRows")
        return tuple(samples(rows, where, now))
