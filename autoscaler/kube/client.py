"""HTTP client for the Kubernetes API: sends and returns JSON, and raises a KubeError for every failure.

Each request has a deadline, because a server that accepts a connection and never responds would block its caller
forever. The client retries only once, after a 401, because the service account token may have been rotated a moment
ago. All other retries belong to the caller, which knows whether a request is safe to repeat.
"""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, Self, TypeAlias

import aiohttp
import msgspec
from aiohttp.connector import NEEDS_CLEANUP_CLOSED

from autoscaler.kube.connection import KubeConnection
from autoscaler.kube.errors import (
    RequestNotSent,
    ResponseTooLarge,
    Unauthorized,
    Unavailable,
    describe,
    error_for_response,
)
from autoscaler.kube.metrics import KubeMetrics
from autoscaler.kube.paths import api_url

log = logging.getLogger(__name__)

Json: TypeAlias = dict[str, Any]

FIELD_MANAGER: Final = "steadyscale"
"""The field manager under which the API server records the fields that this process writes."""

_JSON: Final = "application/json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_REQUEST_TIMEOUT: Final = timedelta(seconds=10)
_MAX_RESPONSE_BYTES: Final = 32 * 2**20
"""Limits memory: a decoded response takes several times its size. A page of 500 large pods has about 10 MB."""

_MAX_LINE_BYTES: Final = 8 * 2**20
"""Limits the lines of a stream. etcd accepts objects of 1.5 MiB by default; their JSON may be longer."""

_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
"""A watch without changes is idle for minutes. TCP keepalive probes detect a dead connection within a minute. The
options are looked up by name, because not every operating system defines all of them."""


class KubeClient:
    """An authenticated HTTP session with the API server. Open it with `KubeClient.open` and share it."""

    def __init__(self, connection: KubeConnection, session: aiohttp.ClientSession, metrics: KubeMetrics) -> None:
        self.metrics = metrics
        self.now = connection.now
        self._connection = connection
        self._session = session

    @classmethod
    @asynccontextmanager
    async def open(cls, connection: KubeConnection, metrics: KubeMetrics | None = None) -> AsyncIterator[Self]:
        connector = aiohttp.TCPConnector(
            ssl=connection.tls,
            limit=100,
            keepalive_timeout=60,
            socket_factory=_keepalive_socket,
            enable_cleanup_closed=NEEDS_CLEANUP_CLOSED,  # an aborted watch must not leave a half-closed TLS socket
        )
        headers = {"Accept": _JSON, "User-Agent": FIELD_MANAGER}
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(_record_sent)
        async with aiohttp.ClientSession(connector=connector, headers=headers, trace_configs=[tracing]) as session:
            yield cls(connection, session, metrics or KubeMetrics())

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
        body_text = None if body is None else json.dumps(body).encode()
        response = await self._request(method, path, query, body_text, content_type, timeout)
        try:
            content = msgspec.json.decode(response)
        except Exception as error:  # also RecursionError and UnicodeDecodeError
            raise Unavailable(f"{method} {path}: response is not JSON: {describe(error)}") from error
        if not isinstance(content, dict):
            raise Unavailable(f"{method} {path}: response is not a JSON object")
        return content

    async def get_bytes(self, path: str, query: Mapping[str, str], accept: str = _JSON) -> bytes:
        """Return the response to a GET request without decoding it."""
        return await self._request("GET", path, query, None, accept, _REQUEST_TIMEOUT)

    async def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
        timeout: timedelta,  # noqa: ASYNC109 - the total timeout of aiohttp
    ) -> bytes:
        parameters = dict(query or {}) if method == "GET" else {"fieldManager": FIELD_MANAGER, **(query or {})}
        client_timeout = aiohttp.ClientTimeout(timeout.total_seconds())
        request = _Request(method, path, parameters, body, content_type, client_timeout)
        try:
            return await self._send(request)
        except Unauthorized:
            return await self._send(request)

    async def stream(self, path: str, query: Mapping[str, str], duration: timedelta) -> AsyncGenerator[bytes | None]:
        """Yield the lines of a response that lasts up to ``duration``; None for a line that is too long."""
        timeout = aiohttp.ClientTimeout(total=duration.total_seconds(), connect=_REQUEST_TIMEOUT.total_seconds())
        async with self._response(_Request("GET", path, dict(query), None, _JSON, timeout)) as response:
            try:
                lines = _LineBuffer()
                async for chunk in response.content.iter_any():
                    for line in lines.feed(chunk):
                        yield line
            finally:
                _abort(response)

    async def _send(self, request: "_Request") -> bytes:
        async with self._response(request) as response:
            return await _read(response)

    @asynccontextmanager
    async def _response(self, request: "_Request") -> AsyncIterator[aiohttp.ClientResponse]:
        connection, sent = self._connection, asyncio.Event()
        headers = dict(await connection.credentials())
        headers["Accept" if request.body is None else "Content-Type"] = request.content_type
        try:
            async with self._session.request(
                request.method,
                api_url(connection.server, request.path),
                params=request.query,
                data=request.body,
                headers=headers,
                timeout=request.timeout,
                server_hostname=connection.server_name,
                proxy=connection.proxy,
                allow_redirects=False,
                trace_request_ctx=sent,
            ) as response:
                if not 200 <= response.status < 300:
                    body, retry_after = await _read(response), response.headers.get("Retry-After")
                    raise error_for_response(response.status, body, retry_after)
                for warning in response.headers.getall("Warning", ()):
                    log.warning("API server warning", extra={"path": request.path, "warning": warning[:256]})
                yield response
        except (aiohttp.ClientError, OSError) as error:  # also TimeoutError
            reason = "request timed out" if isinstance(error, TimeoutError) else describe(error)
            kind = Unavailable if sent.is_set() else RequestNotSent
            raise kind(f"{request.method} {request.path}: {reason}") from error


class _Request(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    body: bytes | None
    content_type: str
    """Of the body; without a body, of the response."""

    timeout: aiohttp.ClientTimeout


async def _record_sent(_session: object, context: SimpleNamespace, _parameters: object) -> None:
    """Set the event of a request; its error does not tell, as aiohttp repeats a PUT if a reused connection closes."""
    context.trace_request_ctx.set()


class _LineBuffer:
    """Splits chunks into lines; drops a line that exceeds the limit without storing it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Add a chunk and yield the lines that it completes; None for a line that was dropped."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            yield b"".join(self._parts) if self._size <= _MAX_LINE_BYTES else None
            self._parts, self._size = [], 0
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= _MAX_LINE_BYTES:
            self._parts.append(part)
        else:
            self._parts.clear()


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Read a response of limited size."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > _MAX_RESPONSE_BYTES:
            _abort(response)
            raise ResponseTooLarge(
                f"{response.method} {response.url.path}: response exceeds {_MAX_RESPONSE_BYTES} bytes"
            )
    return bytes(body)


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
