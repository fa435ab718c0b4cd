"""HTTP client for the Kubernetes API: sends and returns JSON, and raises a KubeError for every failure.

Each request has a deadline, because a server that accepts a connection and never responds would block its caller
forever. The client retries only once, after a 401, because the service account token may have been rotated a moment
ago. All other retries belong to the caller, which knows whether a request is safe to repeat.
"""

import json
import logging
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, NamedTuple, Self, TypeAlias

import aiohttp
import msgspec
from aiohttp.connector import NEEDS_CLEANUP_CLOSED

from autoscaler.kube.connection import KubeConnection
from autoscaler.kube.errors import Unauthorized, Unavailable, error_for_response

log = logging.getLogger(__name__)

Json: TypeAlias = dict[str, Any]

FIELD_MANAGER: Final = "steadyscale"
"""The field manager under which the API server records the fields that this process writes."""

_JSON: Final = "application/json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_REQUEST_TIMEOUT: Final = timedelta(seconds=10)
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
"""A watch without changes is idle for minutes. TCP keepalive probes detect a dead connection within a minute. The
options are looked up by name, because not every operating system defines all of them."""


class KubeClient:
    """An authenticated HTTP session with the API server. Open it with `KubeClient.open` and share it."""

    def __init__(self, connection: KubeConnection, session: aiohttp.ClientSession) -> None:
        self._connection = connection
        self._session = session

    @classmethod
    @asynccontextmanager
    async def open(cls, connection: KubeConnection) -> AsyncIterator[Self]:
        connector = aiohttp.TCPConnector(
            ssl=connection.tls,
            limit=100,
            keepalive_timeout=60,
            socket_factory=_keepalive_socket,
            enable_cleanup_closed=NEEDS_CLEANUP_CLOSED,  # an aborted watch must not leave a half-closed TLS socket
        )
        headers = {"Accept": _JSON, "User-Agent": FIELD_MANAGER}
        async with aiohttp.ClientSession(connector=connector, headers=headers, trust_env=False) as session:
            yield cls(connection, session)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        return await self.request("GET", path, query=query)

    async def create(self, path: str, body: Json) -> Json:
        """Create an object in the collection at ``path``; raise AlreadyExists if it exists."""
        return await self.request("POST", path, body=body)

    async def replace(self, path: str, body: Json) -> Json:
        """Replace an object; raise Conflict if its resourceVersion is not the current one."""
        return await self.request("PUT", path, body=body)

    async def patch(self, path: str, body: Json) -> Json:
        """Apply a merge patch; raise Conflict if it contains a resourceVersion that is not the current one."""
        return await self.request("PATCH", path, body=body, content_type=_MERGE_PATCH)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        content_type: str = _JSON,
        timeout: timedelta = _REQUEST_TIMEOUT,  # noqa: ASYNC109 - the total timeout of aiohttp
    ) -> Json:
        """Send one request and return the JSON object of its response; raise a KubeError on failure."""
        parameters = dict(query or {}) if method == "GET" else {"fieldManager": FIELD_MANAGER, **(query or {})}
        client_timeout = aiohttp.ClientTimeout(timeout.total_seconds())
        request = _Request(method, path, parameters, body, content_type, client_timeout)
        try:
            return await self._send(request)
        except Unauthorized:
            return await self._send(request)

    async def stream(self, path: str, query: Mapping[str, str], duration: timedelta) -> AsyncGenerator[bytes]:
        """Yield the lines of a response that lasts up to ``duration``; the length of a line is not limited."""
        timeout = aiohttp.ClientTimeout(total=duration.total_seconds(), connect=_REQUEST_TIMEOUT.total_seconds())
        async with self._response(_Request("GET", path, dict(query), None, _JSON, timeout)) as response:
            try:
                rest = b""
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        yield line
            finally:
                _abort(response)

    async def _send(self, request: "_Request") -> Json:
        async with self._response(request) as response:
            body = await response.read()
        try:
            content = msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            raise Unavailable(f"{request.method} {request.path}: response is not JSON") from error
        if not isinstance(content, dict):
            raise Unavailable(f"{request.method} {request.path}: response is not a JSON object")
        return content

    @asynccontextmanager
    async def _response(self, request: "_Request") -> AsyncIterator[aiohttp.ClientResponse]:
        connection = self._connection
        headers = dict(await connection.credentials())
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        try:
            async with self._session.request(
                request.method,
                connection.server + request.path,
                params=request.query,
                data=None if request.body is None else json.dumps(request.body).encode(),
                headers=headers,
                timeout=request.timeout,
                server_hostname=connection.server_name,
                proxy=connection.proxy,
                allow_redirects=False,
            ) as response:
                if not 200 <= response.status < 300:
                    body, retry_after = await response.read(), response.headers.get("Retry-After")
                    raise error_for_response(response.status, body, retry_after)
                for warning in response.headers.getall("Warning", ()):
                    log.warning("API server warning", extra={"path": request.path, "warning": warning[:256]})
                yield response
        except TimeoutError as error:
            raise Unavailable(f"{request.method} {request.path}: request timed out") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable(f"{request.method} {request.path}: {error}") from error


class _Request(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    body: Json | None
    content_type: str
    timeout: aiohttp.ClientTimeout


def _abort(response: aiohttp.ClientResponse) -> None:
    """Abort the connection of a stream; a TLS close handshake would be awaited, possibly after the loop has ended."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


def _keepalive_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    created = socket.socket(family, kind, protocol)
    created.setblocking(False)  # noqa: FBT003 - the standard library's own signature
    created.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            created.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return created
