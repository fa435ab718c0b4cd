"""Connections to brokers, one to each, shared and kept. The library's own client connects and asks again by itself."""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.protocol.api import Request

from adapter.backends.connection.address import Address
from adapter.backends.connection.shared_connection import Shared
from adapter.backends.kafka.errors import of_exception
from adapter.errors import BackendError, BackendUnreachable

_NEVER: Final = 86_400_000
"""Milliseconds; the guard's deadline is the only one."""

_IDLE: Final = 540_000
"""Milliseconds that a connection is kept without use: Kafka itself ends it after ten minutes."""

_LEAVE: Final = 1.0
"""Seconds to close in good order."""


class Shown(NamedTuple):
    """What a connection shows of who we are."""

    tls: ssl.SSLContext | None = None
    mechanism: str | None = None
    username: str | None = None
    password: str | None = None

    @property
    def protocol(self) -> str:
        """Say how Kafka calls that."""
        return f"{'SASL_' if self.mechanism else ''}{'SSL' if self.tls else 'PLAINTEXT'}"


class Wires:
    """Connections to all brokers that there is reason to ask."""

    def __init__(self, seeds: Sequence[Address], show: Callable[[], Awaitable[Shown]]) -> None:
        self._seeds = deque(seeds)
        self._show = show
        self._wires: dict[Address, Shared[AIOKafkaConnection]] = {}

    async def ask(self, address: Address, request: Request[Any]) -> Any:  # noqa: ANN401 - answers have no types
        """Ask one broker."""
        async with self._wire(address).one() as connection:
            try:
                return await connection.send(request)
            except Exception as error:  # noqa: BLE001 - the one door: whatever it is, it is no answer
                raise of_exception(error) from None

    async def ask_any(self, request: Request[Any]) -> Any:  # noqa: ANN401
        """Ask the first that can be reached; who cannot is asked last the next time."""
        failure: BackendError = BackendUnreachable("not asked yet")
        for seed in tuple(self._seeds):
            try:
                return await self.ask(seed, request)
            except BackendUnreachable as error:
                failure = error
                self._seeds.rotate(-1)
            except asyncio.CancelledError:
                self._seeds.rotate(-1)
                raise
        raise failure

    async def aclose(self) -> None:
        """Let go of them."""
        for wire in self._wires.values():
            await wire.aclose()

    def _wire(self, address: Address) -> Shared[AIOKafkaConnection]:
        if address not in self._wires:
            self._wires[address] = Shared(lambda: self._opened(address), _closed, _is_good)
        return self._wires[address]

    async def _opened(self, address: Address) -> AIOKafkaConnection:
        shown = await self._show()
        try:
            return await create_conn(
                address.host,
                address.port,
                client_id="steadyscale",
                request_timeout_ms=_NEVER,
                max_idle_ms=_IDLE,
                security_protocol=shown.protocol,
                ssl_context=shown.tls,
                sasl_mechanism=shown.mechanism,
                sasl_plain_username=shown.username,
                sasl_plain_password=shown.password,
            )
        except Exception as error:  # noqa: BLE001 - the same door
            raise of_exception(error) from None


def _is_good(connection: AIOKafkaConnection) -> bool:
    return bool(connection.connected())


async def _closed(connection: AIOKafkaConnection) -> None:
    with suppress(Exception):
        async with asyncio.timeout(_LEAVE):
            await connection.close()


class _NoSecrets(logging.Filter):
    """Keeps out of the log what the library says of requests that hold a password."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.args if isinstance(record.args, tuple) else ()
        return not any(type(each).__name__.startswith("SaslAuthenticate") for each in said)


logging.getLogger("aiokafka.conn").addFilter(_NoSecrets())
