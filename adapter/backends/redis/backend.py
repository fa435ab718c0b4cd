"""The Redis backend: measures one key, or all keys that match a pattern."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from redis.exceptions import AskError

from adapter.backends.connection.address import address
from adapter.backends.connection.secret_file import SecretFile
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.parameters import parameters
from adapter.backends.redis import parse
from adapter.backends.redis.client import RedisConnectionPool, RedisLogin, Reply, raise_error_reply
from adapter.backends.redis.nodes import ClusterNodes, SentinelMaster
from adapter.backends.redis.settings import PORT, SENTINEL_PORT, Redis, RedisParameters
from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.errors import BadQuery
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING_DEADLINE: Final = timedelta(seconds=5)
_PIPELINE_SIZE: Final = 500  # keys that are measured in one round trip


class RedisBackend:
    """A client of a single Redis server, a master behind Sentinel, or a cluster."""

    def __init__(self, name: str, settings: Redis, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._secrets: list[SecretFile] = []
        self._protected = ProtectedCall(settings.circuit_breaker, clock, self._secrets)
        self._nodes = self._create_nodes()

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return a series for each existing key, or for each of its consumer groups."""
        wanted, now = parameters(query, RedisParameters), self._clock()

        async def operation() -> tuple[RawSample, ...]:
            return await (self._fetch_key(wanted, now) if wanted.key else self._fetch_pattern(wanted, now))

        return await self._protected.run(query.text, deadline, operation, namespace=query.namespace)

    async def ping(self) -> None:
        async def operation() -> None:
            raise_error_reply(await self._nodes.execute(("PING",)))

        await self._protected.run("ping", _PING_DEADLINE, operation)

    async def aclose(self) -> None:
        await self._protected.aclose()
        await self._nodes.aclose()

    async def _fetch_key(self, wanted: RedisParameters, now: datetime) -> tuple[RawSample, ...]:
        key = wanted.key.encode()
        exists, reply = await self._nodes.execute(("EXISTS", key), parse.measure_command(wanted.measure, key), key=key)
        if parse.is_key_missing(reply):
            return tuple(parse.samples_of_missing_key(wanted, now))
        raise_error_reply([exists, reply])
        existing = tuple(parse.samples(wanted, key, reply, now)) if parse.parse_count(exists) else ()
        return existing or tuple(parse.samples_of_missing_key(wanted, now))

    async def _fetch_pattern(self, wanted: RedisParameters, now: datetime) -> tuple[RawSample, ...]:
        replies: dict[bytes, Reply] = {}
        for node in await self._nodes.masters():
            keys = await self._scan(node, wanted, self._settings.max_keys - len(replies))
            for first in range(0, len(keys), _PIPELINE_SIZE):
                batch = keys[first : first + _PIPELINE_SIZE]
                batch_replies = await node.execute(*(parse.measure_command(wanted.measure, key) for key in batch))
                replies |= zip(batch, batch_replies, strict=True)
        for key in [key for key, reply in replies.items() if isinstance(reply, AskError)]:  # moved since the scan
            (replies[key],) = await self._nodes.execute(parse.measure_command(wanted.measure, key), key=key)
        existing = {key: reply for key, reply in replies.items() if not parse.is_key_missing(reply)}
        raise_error_reply(existing.values())
        return tuple(sample for key, reply in existing.items() for sample in parse.samples(wanted, key, reply, now))

    async def _scan(self, node: RedisConnectionPool, wanted: RedisParameters, max_keys: int) -> list[bytes]:
        """Return the matching keys of a node without duplicates, which SCAN may return."""
        keys: dict[bytes, None] = {}
        cursor = -1
        while cursor != 0:
            cursor, page = parse.parse_scan(await node.execute_one(*parse.scan_command(wanted, max(cursor, 0))))
            keys |= dict.fromkeys(page)
            if len(keys) > max_keys:
                raise BadQuery("more keys match the pattern than maxKeys allows")
        return list(keys)

    def _create_nodes(self) -> RedisConnectionPool | ClusterNodes:
        settings = self._settings
        sentinel, max_connections = settings.sentinel, settings.max_connections
        addresses = [address(text, SENTINEL_PORT if sentinel else PORT) for text in settings.addresses]
        login = self._login(settings.username, settings.password_file, "passwordFile", settings.database)
        if settings.cluster:
            return ClusterNodes(addresses, login, max_connections)
        if sentinel is None:
            return RedisConnectionPool(addresses[0], login, max_connections)
        sentinel_login = self._login(sentinel.username, sentinel.password_file, "sentinel.passwordFile", 0)
        sentinels = [RedisConnectionPool(each, sentinel_login, 1) for each in addresses]
        return SentinelMaster(sentinels, sentinel.master, login, max_connections)

    def _login(self, username: str, password_file: str, setting: str, database: int) -> RedisLogin:
        password = SecretFile(password_file, setting) if password_file else None
        if password is not None:
            self._secrets.append(password)
        tls = self._settings.tls
        return RedisLogin(username, password, database, TlsFiles(tls) if tls else None, tls.server_name if tls else "")
