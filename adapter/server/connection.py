"""Client connections: their number, their timeouts, and the response to malformed requests.

aiohttp has no timeout for the first request of a connection and none for a client that does not read its response, so
the listener checks both once a second.
"""

import asyncio
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.typedefs import Handler

from adapter.config.model import Limits
from adapter.errors import InvalidRequest
from adapter.server import status
from adapter.server.accounting import RequestAccounting

_CHECK_INTERVAL: Final = 1.0
_LINGERING_TIME: Final = 2.0
"""Seconds for which the unread body of a request is discarded after the response. Closing at once would reset the
connection before the client has read the response, and the API server would report 503."""

_RequestTask: TypeAlias = "asyncio.Task[None]"


class Connection(web.RequestHandler):
    """The connection of one client."""

    __slots__ = ("listener", "unread_since", "waiting_since")

    def __init__(self, listener: "Listener") -> None:
        limits, loop = listener.limits, asyncio.get_running_loop()
        super().__init__(
            listener,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # None is documented to disable aiohttp's own access log
            keepalive_timeout=limits.idle_timeout.total_seconds(),
            lingering_time=_LINGERING_TIME,
            max_headers=limits.max_headers,
            max_line_size=limits.max_header_bytes,
            max_field_size=limits.max_header_bytes,
        )
        self.listener = listener
        self.waiting_since: float | None = loop.time()
        """When the connection was opened; None after its first request."""

        self.unread_since: float | None = None
        """Since when the write buffer contains a response; None if it is empty."""

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002  (a placeholder: the request was not parsed)
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return a Status for a malformed request or an unhandled error, and close the connection."""
        return self.listener.error_response(status, exc, message)


class Listener(web.Server):
    """Creates connections and closes those that exceed the limits."""

    def __init__(self, handler: Handler, limits: Limits, accounting: RequestAccounting) -> None:
        super().__init__(handler, request_factory=self._create_request)  # type: ignore[arg-type]
        self.limits = limits
        self._accounting = accounting

    def __call__(self) -> Connection:
        return Connection(self)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Accept a connection, or close it if there are too many."""
        super().connection_made(handler, transport)
        if len(self._connections) > self.limits.max_connections:
            self._drop(handler, "too_many_connections")

    def error_response(self, code: int, error: BaseException | None, message: str | None) -> web.Response:
        """Return the Status for a request that could not be parsed (4xx), or for an unhandled error."""
        if code < 500:
            reason = (message or "").partition("\n")[0].rstrip(": ")
            response = status.response(InvalidRequest(f"malformed HTTP request: {reason or 'it cannot be parsed'}"))
            self._accounting.record_unparsed("unparsed", response.status)
        else:
            response = status.response(error if isinstance(error, Exception) else RuntimeError("request cancelled"))
            self._accounting.record_unparsed("failed", response.status)
        response.headers.update(status.COMMON_HEADERS)
        response.force_close()
        return response

    async def run(self) -> None:
        """Check all connections once a second until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            self.check_timeouts(loop.time())

    def check_timeouts(self, now: float) -> None:
        """Close connections without a request, or with an unread response, for longer than the header timeout."""
        timeout = self.limits.header_timeout.total_seconds()
        for connection in self.connections:
            if not isinstance(connection, Connection) or connection.transport is None:
                continue
            if connection.waiting_since is not None and now - connection.waiting_since > timeout:
                self._drop(connection, "header_timeout")
            elif not connection.transport.get_write_buffer_size():
                connection.unread_since = None
            elif connection.unread_since is None:
                connection.unread_since = now
            elif now - connection.unread_since > timeout:
                self._drop(connection, "response_not_read")

    def _drop(self, connection: web.RequestHandler, reason: str) -> None:
        self._accounting.telemetry.connections_dropped.labels(reason).inc()
        transport = connection.transport
        connection.force_close()
        if transport is not None:
            transport.abort()  # close() would wait until the client has read the write buffer

    def _create_request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: Connection,
        writer: AbstractStreamWriter,
        task: _RequestTask,
    ) -> web.BaseRequest:
        protocol.waiting_since = None
        return web.BaseRequest(message, payload, protocol, writer, task, self._loop)
