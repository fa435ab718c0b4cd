"""Requests of one user to the API server."""

import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import aiohttp

GROUP: Final = "/apis/steadyscale.dev/v1beta1"
METRICS: Final = "/apis/external.metrics.k8s.io/v1beta1"
_TYPES: Final = {"PATCH": "application/merge-patch+json"}


@dataclass(frozen=True)
class Endpoint:
    """The API server and the credentials of one user, as files."""

    server: str
    ca: str
    certificate: str
    key: str

    @classmethod
    def of(cls, server: str, folder: Path, user: str) -> Self:
        return cls(server, str(folder / "ca.crt"), str(folder / f"{user}.crt"), str(folder / f"{user}.key"))

    def tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(self.certificate, self.key)
        return context


class Api:
    """A session of a user."""

    def __init__(self, endpoint: Endpoint, *, timeout: float, connections: int = 100) -> None:
        connector = aiohttp.TCPConnector(ssl=endpoint.tls(), limit=connections)
        self._session = aiohttp.ClientSession(
            endpoint.server, connector=connector, timeout=aiohttp.ClientTimeout(total=timeout)
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def send(self, method: str, path: str, body: bytes | dict[str, Any] | None = None) -> tuple[int, bytes]:
        """Return status and body; raise aiohttp.ClientError or TimeoutError if there is no response."""
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        headers = {"Content-Type": _TYPES.get(method, "application/json")}
        async with self._session.request(method, path, data=data, headers=headers) as response:
            return response.status, await response.read()

    async def replace(self, collection: str, name: str, body: bytes) -> int:
        """Create an object, or replace it if it exists; return the last status."""
        status, _ = await self.send("DELETE", f"{collection}/{name}")
        status, _ = await self.send("POST", collection, body)
        return status
