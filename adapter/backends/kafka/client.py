"""Connections to Kafka brokers, one per broker, built on the connection class of aiokafka.

The client class of aiokafka is not used, because it reconnects and retries by itself, and would hide failures from the
deadline and the circuit breaker of the backend.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.protocol.api import Request

from adapter.backends.connection.address import Address
from adapter.backends.connection.failover import Failover
from adapter.backends.connection.shared_connection import SharedConnection
from adapter.backends.kafka.errors import from_exception

_NO_TIMEOUT: Final = 86_400_000  # milliseconds, a day: never reached, because ProtectedCall applies the deadline
_MAX_IDLE: Final = 540_000  # milliseconds; brokers close idle connections after ten minutes
_CLOSE_TIMEOUT: Final = 1.0  # seconds


class KafkaCredentials(NamedTuple):
    """The TLS context and the SASL credentials of connections to the brokers."""

    tls: ssl.SSLContext | None = None
    mechanism: str | None = None
    username: str | None = None
    password: str | None = None

    @property
    def security_protocol(self) -> str:
        return f"{'SASL_' if self.mechanism else ''}{'SSL' if self.tls else 'PLAINTEXT'}"


class KafkaBrokers:
    """Connections to the brokers of a cluster."""

    def __init__(self, bootstrap: Sequence[Address], read_credentials: Callable[[], KafkaCredentials]) -> None:
        self._bootstrap = Failover(bootstrap)
        self._read_credentials = read_credentials
        self._connections: dict[Address, SharedConnection[AIOKafkaConnection]] = {}

    async def send(self, broker: Address, request: Request[Any]) -> Any:  # noqa: ANN401 - responses have no types
        if broker not in self._connections:
            self._connections[broker] = SharedConnection(
                lambda: self._connect(broker), _close, AIOKafkaConnection.connected
            )
        async with self._connections[broker].acquire() as connection:
            try:
                return await connection.send(request)
            except Exception as error:  # noqa: BLE001 - aiokafka raises many types; all of them are translated here
                raise from_exception(error) from None

    async def send_to_any(self, request: Request[Any]) -> Any:  # noqa: ANN401
        """Send a request to the first reachable bootstrap server."""
        return await self._bootstrap.run(lambda broker: self.send(broker, request))

    async def aclose(self) -> None:
        for connection in self._connections.values():
            await connection.aclose()

    async def _connect(self, broker: Address) -> AIOKafkaConnection:
        credentials = await asyncio.to_thread(self._read_credentials)
        try:
            return await create_conn(
                broker.host,
                broker.port,
                client_id="steadyscale",
                request_timeout_ms=_NO_TIMEOUT,
                max_idle_ms=_MAX_IDLE,
                security_protocol=credentials.security_protocol,
                ssl_context=credentials.tls,
                sasl_mechanism=credentials.mechanism,
                sasl_plain_username=credentials.username,
                sasl_plain_password=credentials.password,
            )
        except Exception as error:  # noqa: BLE001 - as in send()
            raise from_exception(error, broker.host) from None


async def _close(connection: AIOKafkaConnection) -> None:
    with suppress(Exception):
        async with asyncio.timeout(_CLOSE_TIMEOUT):
            await connection.close()


class _SaslLogFilter(logging.Filter):
    """Drops log records that aiokafka writes about SASL requests, because these contain the password."""

    def filter(self, record: logging.LogRecord) -> bool:
        arguments = record.args if isinstance(record.args, tuple) else ()
        return not any(type(argument).__name__.startswith("SaslAuthenticate") for argument in arguments)


logging.getLogger("aiokafka.conn").addFilter(_SaslLogFilter())
