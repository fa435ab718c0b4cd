"""The Redis backend: one key, or all that match a pattern, under one deadline."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from redis.exceptions import AskError

from adapter.backends.connection.address import Address, address
from adapter.backends.connection.secret_file import SecretFile
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.parameters import parameters
from adapter.backends.redis.client import Login, Said, Wire
from adapter.backends.redis.errors import of_exception
from adapter.backends.redis.nodes import Cluster, Nodes, Sentinels, Single, always
from adapter.backends.redis.parse import is_no_such_key, is_there, nothing, reading, samples, walked, walking
from adapter.backends.redis.settings import PORT, SENTINEL_PORT, Redis, RedisParameters, RedisSentinel
from adapter.backends.resilience.protected_call import Guard
from adapter.errors import BadQuery
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING: Final = timedelta(seconds=5)
_AT_ONCE: Final = 500
"""Keys that are read in one round trip."""


class RedisBackend:
    """A client of one Redis, of what sentinels watch over, or of a cluster."""

    def __init__(self, name: str, settings: Redis, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._secrets: list[SecretFile] = []
        self._guard = Guard(settings.breaker, clock, self._secrets)
        self._sentinels: Sentinels | None = None
        self._nodes = self._opened()

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return a series for each key that is found, or for each of its groups."""
        asked, now = parameters(query, RedisParameters), self._clock()

        async def ask() -> tuple[RawSample, ...]:
            return await (self._one(asked, now) if asked.key else self._all(asked, now))

        return await self._guard.ask(query.text, deadline, ask)

    async def ping(self) -> None:
        """Ask for nothing."""

        async def ask() -> tuple[RawSample, ...]:
            _whole(await self._nodes.ask(b"", ("PING",)))
            return ()

        await self._guard.ask("ping", _PING, ask)

    async def aclose(self) -> None:
        """End what is under way, and let go of connections."""
        await self._guard.aclose()
        await self._nodes.aclose()
        if self._sentinels is not None:
            await self._sentinels.aclose()

    async def _one(self, asked: RedisParameters, now: datetime) -> tuple[RawSample, ...]:
        key = asked.key.encode()
        exists, said = await self._nodes.ask(key, ("EXISTS", key), reading(asked.reads, key))
        if is_no_such_key(said):
            return tuple(nothing(asked, now))
        _whole([exists, said])
        found = tuple(samples(asked, key, said, now)) if is_there(exists) else ()
        return found or tuple(nothing(asked, now))

    async def _all(self, asked: RedisParameters, now: datetime) -> tuple[RawSample, ...]:
        found: dict[bytes, Said] = {}
        for node in await self._nodes.every():
            keys = await self._walk(node, asked, self._settings.most_keys - len(found))
            for first in range(0, len(keys), _AT_ONCE):
                some = keys[first : first + _AT_ONCE]
                answers = await node.ask_each(*(reading(asked.reads, key) for key in some))
                found |= zip(some, answers, strict=True)
        for key in [key for key, said in found.items() if isinstance(said, AskError)]:  # it moved while we walked
            (found[key],) = await self._nodes.ask(key, reading(asked.reads, key))
        there = {key: said for key, said in found.items() if not is_no_such_key(said)}
        _whole(list(there.values()))
        return tuple(sample for key, said in there.items() for sample in samples(asked, key, said, now))

    async def _walk(self, node: Wire, asked: RedisParameters, most: int) -> list[bytes]:
        """Find the keys of a node; Redis may name one twice."""
        found: dict[bytes, None] = {}
        cursor = -1
        while cursor != 0:
            (said,) = await node.ask(walking(asked, max(cursor, 0)))
            cursor, keys = walked(said)
            found |= dict.fromkeys(keys)
            if len(found) > most:
                raise BadQuery("more keys match than mostKeys")
        return list(found)

    def _opened(self) -> Nodes:
        settings = self._settings
        login = self._login(settings.username, settings.password_file, "passwordFile", settings.database)
        if settings.cluster:
            return Cluster(self._addresses(PORT), login, settings.connections)
        if settings.sentinel is None:
            return Single(always(self._addresses(PORT)[0]), login, settings.connections)
        self._sentinels = self._watching(settings.sentinel)
        return Single(self._sentinels.where, login, settings.connections)

    def _watching(self, sentinel: RedisSentinel) -> Sentinels:
        login = self._login(sentinel.username, sentinel.password_file, "sentinel.passwordFile", 0)
        return Sentinels(self._addresses(SENTINEL_PORT), login, sentinel.master)

    def _login(self, username: str, password_file: str, setting: str, database: int) -> Login:
        password = SecretFile(password_file, setting) if password_file else None
        if password is not None:
            self._secrets.append(password)
        tls = self._settings.tls
        return Login(username, password, database, TlsFiles(tls) if tls else None, tls.server_name if tls else "")

    def _addresses(self, default_port: int) -> list[Address]:
        return [address(text, default_port) for text in self._settings.addresses]


def _whole(answers: list[Said]) -> None:
    """See that no answer is an error."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise of_exception(answer) from None
