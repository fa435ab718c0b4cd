"""One connection to NATS. The library would connect anew by itself, and leave who waits for an answer waiting."""

import asyncio
import ssl
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, NamedTuple

from nats import errors
from nats.aio.client import Client

from adapter.backends.connection.address import Address
from adapter.backends.nats.errors import of_exception
from adapter.backends.nats.nkey import Nkey
from adapter.errors import BackendError, BackendUnreachable

_NEVER: Final = 86400
"""Seconds; the guard's deadline is the only one."""

_PING: Final = 20
"""Seconds between signs of life, so that a connection that is dead is found out about while nobody asks."""

_LEAVE: Final = 1.0
"""Seconds to close in good order."""


class Shown(NamedTuple):
    """What a connection shows of who we are."""

    tls: ssl.SSLContext
    must_be_encrypted: bool
    server_name: str
    user: str | None = None
    password: str | None = None
    token: str | None = None
    jwt: str | None = None
    nkey: Nkey | None = None


class _Client(Client):
    """The library's, with a key of ours, and who shows nothing to who offers no encryption where that is wanted."""

    def __init__(self, shown: Shown) -> None:
        super().__init__()
        self._must_be_encrypted = shown.must_be_encrypted
        self._public_nkey = shown.nkey.public if shown.nkey else None

    def _connect_command(self) -> bytes:
        if self._must_be_encrypted and not self._server_info.get("tls_required"):
            raise BackendUnreachable("it does not encrypt, and tls is set")
        said: bytes = super()._connect_command()
        return said


class Line:
    """A connection that several questions share."""

    def __init__(self, shown: Shown, api: str, inbox_prefix: str) -> None:
        self._shown, self._api, self._inbox_prefix = shown, api, inbox_prefix
        self._client = _Client(shown)
        self._waiting: dict[asyncio.Future[BackendError], str] = {}
        """Who waits, and for an answer on which subject; a result is why there will be none."""

        self._is_open = False

    @property
    def is_good(self) -> bool:
        """Say whether to ask on it."""
        return self._is_open and self._client.is_connected

    async def open(self, address: Address) -> None:
        """Connect to one server, once; raise our own error if that fails."""
        shown, sign = self._shown, self._shown.nkey.sign if self._shown.nkey else None
        try:
            await self._client.connect(
                servers=[f"nats://{address}"],
                name="steadyscale",
                allow_reconnect=False,
                connect_timeout=_NEVER,
                ping_interval=_PING,
                error_cb=self._heard,
                closed_cb=self._ended,
                tls=shown.tls,
                tls_hostname=shown.server_name or None,
                user=shown.user,
                password=shown.password,
                token=shown.token,
                signature_cb=sign,
                user_jwt_cb=shown.jwt.encode if shown.jwt else None,
                inbox_prefix=self._inbox_prefix,
            )
        except Exception as error:  # noqa: BLE001 - the one door: whatever it is, there is no connection
            raise of_exception(error) from None
        if not self._client.is_connected:  # the library goes on, whatever it was that came instead of a PONG
            raise of_exception(errors.ProtocolError())
        self._is_open = True

    async def ask(self, subject: str, payload: bytes) -> bytes:
        """Send a question to the API and return its answer, or raise why there is none as soon as that is known."""
        asking = self._client.request(f"{self._api}.{subject}", payload, timeout=_NEVER)
        answer = await self._heeding(subject, asking)
        said: bytes = answer.data
        return said

    async def ping(self) -> None:
        """Go there and back."""
        await self._heeding("", self._client.flush(timeout=_NEVER))

    async def _heeding(self, subject: str, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - the library's
        """Wait for an answer or for news that there will be none, whichever is first."""
        trouble: asyncio.Future[BackendError] = asyncio.get_running_loop().create_future()
        self._waiting[trouble] = subject
        asking = asyncio.ensure_future(work)
        try:
            await asyncio.wait((asking, trouble), return_when=asyncio.FIRST_COMPLETED)
            if trouble.done():
                raise trouble.result()
            try:
                return asking.result()
            except Exception as error:  # noqa: BLE001 - the same door
                raise of_exception(error) from None
        finally:
            del self._waiting[trouble]
            await _ended(asking)

    async def close(self) -> None:
        """Let go of it; a server that does not let us go is left standing."""
        self._is_open = False
        with suppress(Exception):
            async with asyncio.timeout(_LEAVE):
                await self._client.close()

    async def _heard(self, error: Exception) -> None:
        """Hear what the server or the library complains about."""
        if not self._is_open:
            raise error  # or the library would try again
        said = str(error)
        for trouble, subject in self._waiting.items():
            # The server may know the API by another prefix than we do, as that of its own domain.
            is_theirs = f'.{subject.lower()}"' in said or "for subscription" in said
            if isinstance(error, errors.Error) and "permissions violation" in said and is_theirs:
                _tell(trouble, of_exception(error))

    async def _ended(self) -> None:
        """Hear that the connection is over."""
        for trouble in self._waiting:
            _tell(trouble, of_exception(self._client.last_error))


def _tell(trouble: asyncio.Future[BackendError], error: BackendError) -> None:
    if not trouble.done():
        trouble.set_result(type(error)(error.message, detail=error.detail))


async def _ended(asking: asyncio.Future[Any]) -> None:
    """End a question; the library may overhear it once that it is to end."""
    while not asking.done():
        asking.cancel()
        await asyncio.wait((asking,), timeout=0.05)
    if not asking.cancelled():
        asking.exception()  # whatever it was, it was told
