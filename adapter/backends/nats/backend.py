"""The NATS backend: queries the JetStream API for one stream or consumer, or for all of them, page by page."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from adapter.backends.connection.address import Address, address
from adapter.backends.connection.failover import Failover
from adapter.backends.connection.secret_file import SecretFile
from adapter.backends.connection.shared_connection import SharedConnection
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.nats.client import NatsConnection, NatsCredentials
from adapter.backends.nats.nkey import parse_credentials, parse_nkey
from adapter.backends.nats.parse import ApiResponse, ListPage, api_request, decode_response, samples
from adapter.backends.nats.settings import PORT, Nats, NatsParameters
from adapter.backends.parameters import parameters
from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.backends.settings import Tls
from adapter.errors import BackendRejected
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING_DEADLINE: Final = timedelta(seconds=5)
_MAX_LISTED: Final = 10_000  # streams or consumers that one rule may read


class NatsBackend:
    """A client of one NATS account. All queries share one connection."""

    def __init__(self, name: str, settings: Nats, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._tls = TlsFiles(settings.tls or Tls())
        self._secrets = {key: SecretFile(path, key) for key, path in settings.secret_files.items()}
        self._protected = ProtectedCall(settings.circuit_breaker, clock, tuple(self._secrets.values()))
        self._servers = Failover([address(text, PORT) for text in settings.addresses])
        self._connection = SharedConnection(
            lambda: self._servers.run(self._connect), NatsConnection.close, lambda connection: connection.is_usable
        )

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return a series for each existing stream or consumer."""
        wanted, now = parameters(query, NatsParameters), self._clock()

        async def operation() -> tuple[RawSample, ...]:
            async with self._connection.acquire() as connection:
                return tuple(samples(wanted, await self._responses(connection, wanted), now))

        return await self._protected.run(query.text, deadline, operation, namespace=query.namespace)

    async def ping(self) -> None:
        async def operation() -> None:
            async with self._connection.acquire() as connection:
                await connection.ping()

        await self._protected.run("ping", _PING_DEADLINE, operation)

    async def aclose(self) -> None:
        await self._protected.aclose()
        await self._connection.aclose()

    async def _responses(self, connection: NatsConnection, wanted: NatsParameters) -> list[ApiResponse]:
        """Return the response, or all pages of it; empty if the stream or consumer does not exist."""
        responses: list[ApiResponse] = []
        subject, response_type = api_request(wanted)
        listed = 0
        while True:
            payload = b'{"offset":%d}' % listed if response_type is ListPage else b""
            response = decode_response(await connection.request(subject, payload), response_type)
            responses += [response] if response is not None else []
            if not isinstance(response, ListPage):
                return responses
            listed += response.size
            if not response.size or listed >= response.total:
                return responses
            if listed > _MAX_LISTED:
                raise BackendRejected(f"the account has more than {_MAX_LISTED} streams or consumers")

    async def _connect(self, server: Address) -> NatsConnection:
        credentials = await asyncio.to_thread(self._read_credentials)
        connection = NatsConnection(credentials, self._settings.api, self._settings.inbox_prefix)
        try:
            await connection.open(server)
        except BaseException:
            self._connection.close_in_background(connection)
            raise
        return connection

    def _read_credentials(self) -> NatsCredentials:
        tls = self._settings.tls
        credentials = NatsCredentials(self._tls.context(), tls is not None, tls.server_name if tls else "")
        for key, secret in self._secrets.items():  # at most one
            match key:
                case "passwordFile":
                    login = {"user": self._settings.username, "password": secret.read_sync()}
                    return credentials._replace(login=login)
                case "tokenFile":
                    return credentials._replace(login={"token": secret.read_sync()})
                case "nkeyFile":
                    return credentials._replace(nkey=parse_nkey(secret.read_sync(), key))
                case _:
                    jwt, seed = parse_credentials(secret.read_lines_sync(), key)
                    return credentials._replace(login={"user_jwt_cb": jwt.encode}, nkey=parse_nkey(seed, key))
        return credentials
