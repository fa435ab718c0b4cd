"""One authenticated session with the API server: JSON in, JSON out, and every failure one of our own errors.

Each request has a deadline; without one, a server that accepts and never answers would hold its caller for ever. There
is no retry here except one: a request refused as 401 is sent once more, because a service account's token may have been
replaced a moment ago. All other patience belongs to who asked, who knows whether asking twice is safe.
"""

import json
import logging
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, Self, TypeAlias

import aiohttp
import msgspec
from aiohttp.connector import NEEDS_CLEANUP_CLOSED

from autoscaler.kube.connection import Connection
from autoscaler.kube.errors import Unauthorized, Unavailable, refusal

log = logging.getLogger(__name__)

Json: TypeAlias = dict[str, Any]

FIELD_MANAGER: Final = "steadyscale"
"""The name under which the API server records what we wrote."""

_PLAIN: Final = "application/json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_DEADLINE: Final = timedelta(seconds=10)
_PROBES: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
"""A watch of something that never changes is silent for minutes. So the kernel asks whether the other end is still
there, and a connection that leads nowhere is known after a minute. Named, because not every system has all of them."""


class KubeClient:
    """The session. Open it with `KubeClient.open`; share it."""

    def __init__(self, connection: Connection, session: aiohttp.ClientSession) -> None:
        self._connection = connection
        self._session = session

    @classmethod
    @asynccontextmanager
    async def open(cls, connection: Connection) -> AsyncIterator[Self]:
        """Open a session that is closed with the block."""
        connector = aiohttp.TCPConnector(
            ssl=connection.tls,
            limit=100,
            keepalive_timeout=60,
            socket_factory=_probed_socket,
            enable_cleanup_closed=NEEDS_CLEANUP_CLOSED,  # so that no watch broken off leaves a socket half closed
        )
        headers = {"Accept": _PLAIN, "User-Agent": FIELD_MANAGER}
        async with aiohttp.ClientSession(connector=connector, headers=headers, trust_env=False) as session:
            yield cls(connection, session)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Read an object or a list."""
        return await self.request("GET", path, query=query)

    async def create(self, path: str, body: Json) -> Json:
        """Create an object in the collection at `path`; AlreadyExists if it is there."""
        return await self.request("POST", path, body=body)

    async def replace(self, path: str, body: Json) -> Json:
        """Write a whole object; Conflict if its resourceVersion is not the current one."""
        return await self.request("PUT", path, body=body)

    async def patch(self, path: str, body: Json) -> Json:
        """Merge `body` into the object; a resourceVersion in it makes that a Conflict if it is not the current one."""
        return await self.request("PATCH", path, body=body, content_type=_MERGE_PATCH)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        content_type: str = _PLAIN,
        deadline: timedelta = _DEADLINE,
    ) -> Json:
        """Send one request and return the answer's JSON, or raise a KubeError that says why there is none."""
        sent = _Sent(method, path, _query(method, query), body, content_type, aiohttp.ClientTimeout(_seconds(deadline)))
        try:
            return await self._answer(sent)
        except Unauthorized:
            return await self._answer(sent)

    async def stream(self, path: str, query: Mapping[str, str], length: timedelta) -> AsyncGenerator[bytes]:
        """Yield the lines of an answer that goes on for up to `length`, however long each line is."""
        patience = aiohttp.ClientTimeout(total=_seconds(length), connect=_seconds(_DEADLINE))
        async with self._response(_Sent("GET", path, dict(query), None, _PLAIN, patience)) as response:
            try:
                rest = b""
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        yield line
            finally:
                _hang_up(response)

    async def _answer(self, sent: "_Sent") -> Json:
        async with self._response(sent) as response:
            body = await response.read()
        try:
            answer = msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            raise Unavailable(f"the answer to {sent.method} {sent.path} is not JSON") from error
        if not isinstance(answer, dict):
            raise Unavailable(f"the answer to {sent.method} {sent.path} is not an object")
        return answer

    @asynccontextmanager
    async def _response(self, sent: "_Sent") -> AsyncIterator[aiohttp.ClientResponse]:
        to = self._connection
        headers = {**await to.credentials(), **({"Content-Type": sent.content_type} if sent.body is not None else {})}
        try:
            async with self._session.request(
                sent.method,
                to.server + sent.path,
                params=sent.query,
                data=None if sent.body is None else json.dumps(sent.body).encode(),
                headers=headers,
                timeout=sent.timeout,
                server_hostname=to.server_name,
                proxy=to.proxy,
                allow_redirects=False,
            ) as response:
                if not 200 <= response.status < 300:
                    raise refusal(response.status, await response.read(), response.headers.get("Retry-After"))
                for warning in response.headers.getall("Warning", ()):
                    log.warning("the API server warns", extra={"path": sent.path, "warning": warning[:256]})
                yield response
        except TimeoutError as error:
            raise Unavailable(f"{sent.method} {sent.path}: no answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable(f"{sent.method} {sent.path}: {error}") from error


class _Sent:
    """A request, as a value that can be sent twice."""

    __slots__ = ("body", "content_type", "method", "path", "query", "timeout")

    def __init__(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        body: Json | None,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.body = body
        self.content_type = content_type
        self.timeout = timeout


def _query(method: str, query: Mapping[str, str] | None) -> dict[str, str]:
    return dict(query or {}) if method == "GET" else {"fieldManager": FIELD_MANAGER, **(query or {})}


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """End a stream that has not ended; a polite good-bye over TLS would be waited for, and may come after the loop."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


def _probed_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)  # noqa: FBT003 - the standard library's own signature
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES.items():
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def _seconds(duration: timedelta) -> float:
    return duration.total_seconds()
