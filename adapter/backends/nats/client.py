"""One connection to a NATS server, on nats-py.

Reconnects of nats-py are disabled: during a reconnect, pending requests would wait until their deadline. Here they fail
as soon as the connection is lost, or the server reports a permission error.
"""

import asyncio
import ssl
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from nats import errors
from nats.aio.client import Client

from adapter.backends.connection.address import Address
from adapter.backends.nats.errors import from_exception
from adapter.backends.nats.nkey import Nkey
from adapter.errors import BackendUnreachable

_NO_TIMEOUT: Final = 86400  # seconds; ProtectedCall applies the deadline
_PING_INTERVAL: Final = 20  # seconds between PINGs, so that a dead connection is detected while it is idle
_CLOSE_TIMEOUT: Final = 1.0  # seconds


class NatsCredentials(NamedTuple):
    """TLS and authentication of a connection."""

    tls: ssl.SSLContext
    is_tls_required: bool
    server_name: str
    nkey: Nkey | None = None
    login: Mapping[str, Any] = {}
    """Arguments of nats-py's ``Client.connect``."""


class NatsClient(Client):
    """The client of nats-py with two extensions that its public API does not offer.

    It signs with an nkey without the package ``nkeys``, and it sends no credentials to a server without TLS if TLS is
    required.
    """

    def __init__(self, credentials: NatsCredentials) -> None:
        super().__init__()
        self._is_tls_required = credentials.is_tls_required
        self._public_nkey = credentials.nkey.public if credentials.nkey else None

    def _connect_command(self) -> bytes:
        if self._is_tls_required and not self._server_info.get("tls_required"):
            raise BackendUnreachable("the server does not use TLS, but tls is set")
        return bytes(super()._connect_command())


class NatsConnection:
    """A connection that several requests share."""

    def __init__(self, credentials: NatsCredentials, api: str, inbox_prefix: str) -> None:
        self._credentials, self._api, self._inbox_prefix = credentials, api, inbox_prefix
        self._client = NatsClient(credentials)
        self._pending: dict[asyncio.Future[Exception | None], str] = {}
        """Failure and subject of each pending request; a failure is set when no response can be expected any more."""

        self._is_open = False

    @property
    def is_usable(self) -> bool:
        return self._is_open and self._client.is_connected

    async def open(self, server: Address) -> None:
        """Connect to a server; raise ``BackendError`` if that fails."""
        credentials = self._credentials
        try:
            await self._client.connect(
                servers=[f"nats://{server}"],
                name="steadyscale",
                allow_reconnect=False,
                connect_timeout=_NO_TIMEOUT,
                ping_interval=_PING_INTERVAL,
                error_cb=self._on_error,
                closed_cb=self._on_closed,
                tls=credentials.tls,
                tls_hostname=credentials.server_name or None,
                signature_cb=credentials.nkey.sign if credentials.nkey else None,
                inbox_prefix=self._inbox_prefix,
                **credentials.login,
            )
        except Exception as error:  # noqa: BLE001 - nats-py raises many types; all of them are translated here
            raise from_exception(error, server.host) from None
        if not self._client.is_connected:  # nats-py returns even if the server sent something else than PONG
            raise from_exception(errors.ProtocolError())
        self._is_open = True

    async def request(self, subject: str, payload: bytes) -> bytes:
        response = await self._run(subject, self._client.request(f"{self._api}.{subject}", payload, _NO_TIMEOUT))
        return bytes(response.data)

    async def ping(self) -> None:
        await self._run("", self._client.flush(timeout=_NO_TIMEOUT))

    async def close(self) -> None:
        """Close the connection; give up if the server does not respond."""
        self._is_open = False
        with suppress(Exception):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await self._client.close()

    async def _run(self, subject: str, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - nats-py's
        """Return the result of the work, or raise as soon as no response can be expected."""
        failure: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self._pending[failure] = subject
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, failure), return_when=asyncio.FIRST_COMPLETED)
            if failure.done():
                raise from_exception(failure.result())
            try:
                return task.result()
            except Exception as error:  # noqa: BLE001 - as in open()
                raise from_exception(error) from None
        finally:
            del self._pending[failure]
            await _cancel(task)

    async def _on_error(self, error: Exception) -> None:
        """Fail the pending requests that a permission error of the server is about."""
        if not self._is_open:
            raise error  # otherwise nats-py tries to connect again
        message = str(error)
        if not isinstance(error, errors.Error) or "permissions violation" not in message:
            return
        for failure, subject in self._pending.items():
            # The server may report the subject with another API prefix, such as that of its own domain.
            is_about_request = f'.{subject.lower()}"' in message or "for subscription" in message
            if is_about_request and not failure.done():
                failure.set_result(error)

    async def _on_closed(self) -> None:
        for failure in self._pending:
            if not failure.done():
                failure.set_result(self._client.last_error)


async def _cancel(task: asyncio.Future[Any]) -> None:
    """Cancel a task until it ends; nats-py can swallow a cancellation."""
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=0.05)
    if not task.cancelled():
        task.exception()  # marks the exception as retrieved
