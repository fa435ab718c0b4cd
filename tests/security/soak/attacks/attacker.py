"""Shared state of the attacks: credentials, the random generator and the counts."""

import asyncio
import random
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import aiohttp

from tests.security.soak.api import GROUP, Api

SOURCES: Final = 20
"""Pods from which connections come, each with an address of its own."""

LEAK: Final = "LEAK"
"""Outcome of a read that returned a value of another tenant."""


@dataclass
class HostileTenant:
    """A user with the role edit in one namespace."""

    namespace: str
    api: Api
    token: str
    """A service account token of the namespace, for direct connections."""

    def path(self, kind: str) -> str:
        return f"{GROUP}/namespaces/{self.namespace}/{kind}"

    async def create(self, kind: str, name: str, body: bytes) -> str:
        """Create or replace an object; return whether the API server accepted it."""
        status = await self.api.replace(self.path(kind), name, body)
        return "stored" if status == 201 else f"refused by the API server ({status})"


@dataclass
class Attacker:
    """All hostile tenants and the pod that they attack."""

    tenants: list[HostileTenant]
    host: str
    port: int
    random: random.Random
    counts: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    @property
    def unverified(self) -> ssl.SSLContext:
        return ssl._create_unverified_context()  # noqa: S323 - an attacker does not verify

    def source(self) -> tuple[str, int]:
        """Return the address of one of the attackers' pods; that of the API server is another one."""
        return f"127.0.1.{self.random.randint(1, SOURCES)}", 0

    async def connect(self, *, tls: bool = False) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to the attacked process."""
        context = self.unverified if tls else None
        return await asyncio.open_connection(self.host, self.port, ssl=context, local_addr=self.source())

    async def get(self, path: str, headers: dict[str, str]) -> int:
        """Send a request directly to the attacked process, on a new connection; return the status."""
        connector = aiohttp.TCPConnector(local_addr=self.source(), ssl=self.unverified)
        timeout = aiohttp.ClientTimeout(total=20)
        async with (
            aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
            session.get(self.url + path, headers=headers) as response,
        ):
            await response.read()
            return response.status

    def tenant(self) -> HostileTenant:
        return self.random.choice(self.tenants)

    def count(self, kind: str, outcome: str, number: int = 1) -> None:
        self.counts.setdefault(kind, Counter())[outcome] += number

    async def pause(self, longest: float) -> None:
        await asyncio.sleep(self.random.uniform(0, longest))

    async def repeat(self, kind: str, attack: "Attack", pause: float) -> None:
        """Run one kind of attack again and again, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(60):
                    self.count(kind, await attack(self))
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                self.count(kind, type(error).__name__)
            await self.pause(pause)


Attack: TypeAlias = Callable[[Attacker], Awaitable[str]]
Json: TypeAlias = dict[str, Any]
