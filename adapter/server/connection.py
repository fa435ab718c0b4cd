"""A client connection: its limits on request headers and its timeouts, which aiohttp does not have.

aiohttp limits the number of headers and the length of each, but not their sum; it has no timeout for a request that
arrives slowly, and none for a client that does not read its response.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from aiohttp import web
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

if TYPE_CHECKING:
    from adapter.server.listener import Listener

_LINGERING_TIME: Final = 2.0
"""Seconds for which the unread body of a request is discarded after the response. Closing at once would reset the
connection before the client has read the response, and the API server would report 503."""

_READ_BUFFER: Final = 16 * 1024
"""Bytes of a request body to buffer. Bodies are discarded."""

_HEADERS_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


class Connection(web.RequestHandler):
    """The connection of one client, from the moment it is accepted."""

    __slots__ = ("head_bytes", "head_since", "is_front_proxy", "listener", "payload", "source", "unread_since")

    def __init__(self, listener: "Listener", source: str) -> None:
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
            read_bufsize=_READ_BUFFER,
            auto_decompress=False,  # a small compressed body could become a large one
        )
        self.listener = listener
        self.source = source
        self.is_front_proxy = False
        self.payload: StreamReader = EMPTY_PAYLOAD
        """The body of the last request."""

        self.head_since: float | None = loop.time()
        """Since when the server waits for the rest of a request's headers, or for the first request; None if idle."""

        self.head_bytes = 0
        """Bytes received since the last request was started, without its body."""

        self.unread_since: float | None = None
        """Since when the write buffer contains a response; None if it is empty."""

    def data_received(self, data: bytes) -> None:
        """Parse received data; close the connection if the headers of a request are too large."""
        is_body = self._has_open_body()
        super().data_received(data)
        if is_body or not data or self.transport is None:
            return
        if self.head_since is None:
            self.head_since = self._loop.time()
        self.head_bytes += len(data)
        if self.head_bytes > self.listener.limits.max_header_bytes and self._is_head_too_large():
            self.listener.drop(self, "headers_too_large", _HEADERS_TOO_LARGE)

    def start_request(self, message: RawRequestMessage, payload: StreamReader) -> None:
        """Note that the headers of a request are complete."""
        self.payload, self.head_since, self.head_bytes = payload, None, 0
        if message.upgrade:
            self.close()  # after the response: the server has no other protocol, and aiohttp would buffer what follows

    def timeout(self, now: float, seconds: float) -> str | None:
        """Return why the connection must be closed: slow headers or an unread response; None if it may stay open."""
        if self.head_since is not None and now - self.head_since > seconds:
            return "header_timeout"
        if self.transport is None or not self.transport.get_write_buffer_size():
            self.unread_since = None
        elif self.unread_since is None:
            self.unread_since = now
        elif now - self.unread_since > seconds:
            return "response_not_read"
        return None

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002  (a placeholder: the request was not parsed)
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return a Status for a malformed request or an unhandled error, and close the connection."""
        return self.listener.error_response(status, exc, message)

    def _has_open_body(self) -> bool:
        """Return whether the body of the last request that was received is incomplete."""
        payload = self._messages[-1][1] if self._messages else self.payload
        return not payload.is_eof()

    def _is_head_too_large(self) -> bool:
        """Return whether the received bytes are too many headers or requests, not one request with its body."""
        if len(self._messages) != 1:
            return not self._has_open_body()
        message = self._messages[0][0]
        if not isinstance(message, RawRequestMessage):
            return False  # a malformed request, whose response closes the connection
        size = len(message.path) + sum(len(name) + len(value) + 4 for name, value in message.raw_headers)
        return size > self.listener.limits.max_header_bytes
