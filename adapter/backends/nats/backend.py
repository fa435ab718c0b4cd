"""The NATS backend: JetStream's API is asked for one stream or consumer, or for all, page after page."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from adapter.backends.connection.address import address
from adapter.backends.connection.secret_file import SecretFile
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.nats.client import Lines
from adapter.backends.nats.connection import Line, Shown
from adapter.backends.nats.nkey import credentials, nkey
from adapter.backends.nats.parse import Found, Page, decoded, samples, shape, subject
from adapter.backends.nats.settings import PORT, Nats, NatsParameters
from adapter.backends.parameters import parameters
from adapter.backends.resilience.protected_call import Guard
from adapter.backends.settings import Tls
from adapter.errors import BackendRejected
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING: Final = timedelta(seconds=5)
_MOST: Final = 10_000
"""Streams or consumers that one rule may find."""


class NatsBackend:
    """A client of one account of NATS."""

    def __init__(self, name: str, settings: Nats, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._tls = TlsFiles(settings.tls or Tls())
        self._password = _secret(settings.password_file, "passwordFile")
        self._token = _secret(settings.token_file, "tokenFile")
        self._credentials = _secret(settings.credentials_file, "credentialsFile")
        self._nkey = _secret(settings.nkey_file, "nkeyFile")
        every = (self._password, self._token, self._credentials, self._nkey)
        self._guard = Guard(settings.breaker, clock, [each for each in every if each is not None])
        self._lines = Lines([address(text, PORT) for text in settings.addresses], self._line)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return a series for each stream or consumer that there is."""
        asked, now = parameters(query, NatsParameters), self._clock()

        async def ask() -> tuple[RawSample, ...]:
            async with self._lines.one() as line:
                return tuple(samples(asked, await self._found(line, asked), now))

        return await self._guard.ask(query.text, deadline, ask)

    async def ping(self) -> None:
        """Connect, if we are not, and go there and back."""

        async def ask() -> tuple[RawSample, ...]:
            async with self._lines.one() as line:
                await line.ping()
            return ()

        await self._guard.ask("ping", _PING, ask)

    async def aclose(self) -> None:
        """End what is under way, and let go of the connection."""
        await self._guard.aclose()
        await self._lines.aclose()

    async def _found(self, line: Line, asked: NatsParameters) -> list[Found]:
        """Ask, and ask on while there are more."""
        found: list[Found] = []
        count = 0
        while True:
            payload = b'{"offset":%d}' % count if shape(asked) is Page else b""
            answer = decoded(await line.ask(subject(asked), payload), shape(asked))
            if answer is None:
                return found
            found.append(answer)
            if not isinstance(answer, Page):
                return found
            count += answer.size
            if not answer.size or count >= answer.total:
                return found
            if count > _MOST:
                raise BackendRejected("it names more streams or consumers than anyone can have")

    async def _line(self) -> Line:
        shown = await asyncio.to_thread(self._show)
        return Line(shown, self._settings.api, self._settings.inbox_prefix)

    def _show(self) -> Shown:
        """Put together what we show; in a thread, because secrets and certificates are files."""
        tls = self._settings.tls
        shown = Shown(self._tls.context(), tls is not None, tls.server_name if tls else "")
        if self._password is not None:
            return shown._replace(user=self._settings.username, password=self._password.read_now())
        if self._token is not None:
            return shown._replace(token=self._token.read_now())
        if self._nkey is not None:
            return shown._replace(nkey=nkey(self._nkey.read_now(), "nkeyFile"))
        if self._credentials is not None:
            jwt, seed = credentials(self._credentials.read_lines_now(), "credentialsFile")
            return shown._replace(jwt=jwt, nkey=nkey(seed, "credentialsFile"))
        return shown


def _secret(path: str, setting: str) -> SecretFile | None:
    return SecretFile(path, setting) if path else None
