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
from adapter.backends.nats.parse import ApiResponse, ListPage, api_subject, decode_response, response_type, samples
from adapter.backends.nats.settings import PORT, Nats, NatsParameters
from adapter.backends.parameters import parameters
from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.backends.settings import Tls
from adapter.errors import BackendRejected
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING_DEADLINE: Final = timedelta(seconds=5)
_MAX_LISTED: Final = 10_000
"""Streams or consumers that one rule may read."""


class NatsBackend:
    """A client of one NATS account. All queries share one connection."""

    def __init__(self, name: str, settings: Nats, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._tls = TlsFiles(settings.tls or Tls())
        self._password = _secret(settings.password_file, "passwordFile")
        self._token = _secret(settings.token_file, "tokenFile")
        self._credentials = _secret(settings.credentials_file, "credentialsFile")
        self._nkey = _secret(settings.nkey_file, "nkeyFile")
        secrets = (self._password, self._token, self._credentials, self._nkey)
        self._protected = ProtectedCall(settings.circuit_breaker, clock, [each for each in secrets if each is not None])
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

        return await self._protected.run(query.text, deadline, operation)

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
        listed = 0
        while True:
            payload = b'{"offset":%d}' % listed if response_type(wanted) is ListPage else b""
            body = await connection.request(api_subject(wanted), payload)
            response = decode_response(body, response_type(wanted))
            if response is None:
                return responses
            responses.append(response)
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
        if self._password is not None:
            return credentials._replace(user=self._settings.username, password=self._password.read_sync())
        if self._token is not None:
            return credentials._replace(token=self._token.read_sync())
        if self._nkey is not None:
            return credentials._replace(nkey=parse_nkey(self._nkey.read_sync(), "nkeyFile"))
        if self._credentials is not None:
            jwt, seed = parse_credentials(self._credentials.read_lines_sync(), "credentialsFile")
            return credentials._replace(jwt=jwt, nkey=parse_nkey(seed, "credentialsFile"))
        return credentials


def _secret(path: str, setting: str) -> SecretFile | None:
    return SecretFile(path, setting) if path else None
