"""Connections: how many, how long they may keep us waiting, and what is said to a client that does not speak HTTP."""

import asyncio

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.typedefs import Handler

from adapter.config.model import Limits
from adapter.errors import BadRequest
from adapter.server import status
from adapter.server.values import COMMON
from adapter.telemetry import Telemetry

_LOOK_EVERY = 1.0
_LINGERING = 2.0
"""Seconds for which a body that nobody wants is read all the same after the answer: to hang up on who is still sending
takes the answer away from them, and the API server then tells its caller 503."""


class Connection(web.RequestHandler):
    """One client's connection, and since when it has kept us waiting."""

    __slots__ = ("listener", "stuck", "waiting")

    def __init__(self, listener: "Listener") -> None:
        super().__init__(
            listener,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # we write our own; the library takes None for none
            keepalive_timeout=listener.limits.idle_timeout.total_seconds(),
            lingering_time=_LINGERING,
            max_headers=listener.limits.max_headers,
            max_line_size=listener.limits.max_header_bytes,
            max_field_size=listener.limits.max_header_bytes,
        )
        self.listener = listener
        self.waiting: float | None = self._loop.time()
        """Since when no request has come; None once one has."""

        self.stuck: float | None = None
        """Since when an answer lies unread; None while none does."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, unless there are as many as there may be."""
        super().connection_made(transport)
        if len(self.listener.connections) > self.listener.limits.connections:
            self.listener.drop(self, "too many")

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002  (there is none: it did not parse)
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is not HTTP as everything else is answered, and hang up."""
        if status < 500:
            return self.listener.refuse(message)
        return self.listener.fail(exc)


class Listener(web.Server):
    """Makes connections and looks after them."""

    def __init__(self, answer: Handler, limits: Limits, telemetry: Telemetry) -> None:
        super().__init__(answer, request_factory=self._request)  # type: ignore[arg-type]
        self.limits = limits
        self._telemetry = telemetry

    def __call__(self) -> Connection:
        """Make the protocol of a new connection."""
        return Connection(self)

    def refuse(self, message: str | None) -> web.Response:
        """Say that this was not a request."""
        what = (message or "").partition("\n")[0].rstrip(": ")
        return self._last_words(
            BadRequest(f"not an HTTP request that can be answered: {what or 'it does not parse'}"), "unparsed"
        )

    def fail(self, error: BaseException | None) -> web.Response:
        """Say that we failed at what is done around every request, where no Status could be made of it."""
        return self._last_words(error if isinstance(error, Exception) else RuntimeError("cut off"), "failed")

    def _last_words(self, error: Exception, endpoint: str) -> web.Response:
        answer = status.answer(error)
        answer.force_close()
        answer.headers.update(COMMON)
        self._telemetry.requests.add(endpoint, str(answer.status))
        return answer

    def drop(self, connection: Connection, why: str) -> None:
        """Close a connection from our side."""
        self._telemetry.dropped.add(why)
        transport = connection.transport
        connection.force_close()
        if transport is not None:
            transport.abort()

    async def look_after(self) -> None:
        """Look at every connection once a second, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self.look(loop.time())

    def look(self, now: float) -> None:
        """Drop whoever has not sent a request in time, and whoever does not read the answer."""
        patience = self.limits.header_timeout.total_seconds()
        for connection in self.connections:
            if not isinstance(connection, Connection) or connection.transport is None:
                continue
            if connection.waiting is not None and now - connection.waiting > patience:
                self.drop(connection, "no request")
            elif not connection.transport.get_write_buffer_size():
                connection.stuck = None
            elif connection.stuck is None:
                connection.stuck = now
            elif now - connection.stuck > patience:
                self.drop(connection, "answer unread")

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: Connection,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        protocol.waiting = None
        return web.BaseRequest(message, payload, protocol, writer, task, self._loop)
