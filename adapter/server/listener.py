"""The listening socket: accepts connections, and closes those that exceed the limits.

asyncio's own server counts a connection only after the TLS handshake, when its buffers are already allocated. Here a
connection counts from the moment it is accepted. It counts as unauthenticated until a request on it has a valid
credential, which any pod has: the token of its service account.

Half of ``maxConnections`` is for the API server: connections with the front proxy's certificate, which no others
displace, and new connections from its addresses, so that a burst of them is accepted during an attack. The other half
is divided between connections with another valid credential and unauthenticated ones.
"""

import asyncio
import logging
import os
import socket
import ssl
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.typedefs import Handler
from cachetools import TTLCache

from adapter.auth.source_address import source_of
from adapter.config.model import Limits
from adapter.errors import CannotListen, InvalidRequest
from adapter.server import status
from adapter.server.accounting import RequestAccounting
from adapter.server.connection import Connection
from adapter.server.connection_limit import ConnectionLimit

_CHECK_INTERVAL: Final = 1.0
_BACKLOG: Final = 1024
_ACCEPT_BATCH: Final = 128
_SOCKET_BUFFER: Final = 64 * 1024
"""Bytes that the kernel buffers per direction and connection; it counts twice as much against the memory limit."""

_MAX_FRONT_PROXIES: Final = 256
_FRONT_PROXY_TTL: Final = 600.0
"""How many seconds the address of a front proxy is remembered after its last request."""

_TLS_SHUTDOWN_TIMEOUT: Final = 1.0
"""Seconds to wait for the client's close_notify, in which the connection keeps its memory."""

_RequestTask: TypeAlias = "asyncio.Task[None]"
_log = logging.getLogger(__name__)


class Listener(web.Server):
    """Creates connections and closes those that exceed the limits."""

    def __init__(self, handler: Handler, limits: Limits, accounting: RequestAccounting) -> None:
        super().__init__(handler, request_factory=self._create_request)  # type: ignore[arg-type]
        self.limits = limits
        self._accounting = accounting
        quarter = max(1, limits.max_connections // 4)
        self._unauthenticated: ConnectionLimit[Connection] = ConnectionLimit(quarter)
        self._authenticated: ConnectionLimit[Connection] = ConnectionLimit(quarter)
        self._front_proxy: ConnectionLimit[Connection] = ConnectionLimit(2 * quarter)
        """Connections of the front proxy, and new ones from its addresses."""

        self._front_proxy_sources: TTLCache[str, None] = TTLCache(_MAX_FRONT_PROXIES, _FRONT_PROXY_TTL)
        self._handshakes: dict[Connection, asyncio.Task[None]] = {}
        self._waiting: dict[Connection, socket.socket] = {}
        """Sockets whose handshake task has not begun yet; such a task, if cancelled, cannot close its socket."""

    def start(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Accept connections until ``stop`` is called."""
        self._loop.add_reader(listening, self._accept, listening, tls)

    def stop(self, listening: socket.socket) -> None:
        """Accept no more connections, and cancel handshakes."""
        self._loop.remove_reader(listening)
        listening.close()
        for handshake in tuple(self._handshakes.values()):
            handshake.cancel()

    async def check(self) -> None:
        """Check the timeouts of all connections once a second until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            self.check_timeouts(loop.time())

    def check_timeouts(self, now: float) -> None:
        """Close connections with slow headers, or with an unread response, for longer than the header timeout."""
        seconds = self.limits.header_timeout.total_seconds()
        for connection in self.connections:
            if isinstance(connection, Connection) and (reason := connection.timeout(now, seconds)):
                self.drop(connection, reason)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Stop counting a connection."""
        super().connection_lost(handler, exc)
        if isinstance(handler, Connection):
            self._forget(handler)

    def authenticated(self, connection: Connection, *, is_front_proxy: bool) -> None:
        """Count the connection as one with a valid credential, or as one with the front proxy's certificate."""
        if is_front_proxy:
            self._front_proxy_sources[connection.source] = None
        limit = self._front_proxy if is_front_proxy else self._authenticated
        if connection in limit and connection.is_front_proxy == is_front_proxy:
            limit.touch(connection, self._loop.time())
        elif any(connection in counted for counted in self._limits):
            self._forget(connection)
            connection.is_front_proxy = is_front_proxy
            self._add(limit, connection)

    def drop(self, connection: Connection, reason: str, response: bytes = b"") -> None:
        """Close a connection, also during its handshake; send the response first, if there is one."""
        self._count_dropped(reason)
        transport = connection.transport
        if transport is not None and response:
            transport.write(response)
        connection.force_close()
        if response:
            return
        self._forget(connection)
        if transport is not None:
            transport.abort()  # close() would wait until the client has read the write buffer
        if handshake := self._handshakes.get(connection):
            handshake.cancel()

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

    def _accept(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Accept waiting connections, and close at once those that the limit does not admit.

        Many at a time: if the kernel's queue were full, it would ignore further clients, and these wait for seconds.
        """
        for _ in range(_ACCEPT_BATCH):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # for example: too many open files
                _log.warning("accepting a connection failed, retrying", extra={"error": str(error)})
                self._loop.remove_reader(listening)
                self._loop.call_later(_CHECK_INTERVAL, self._resume, listening, tls)
                return
            source = source_of(address[0])
            limit = self._front_proxy if source in self._front_proxy_sources else self._unauthenticated
            if limit.admits(source, self._loop.time()):
                connection = Connection(self, source)
                self._add(limit, connection)
                self._open(connection, accepted, tls)
            else:
                accepted.close()
                self._count_dropped("too_many_connections")

    def _resume(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        if listening.fileno() >= 0:
            self.start(listening, tls)

    def _open(self, connection: Connection, accepted: socket.socket, tls: ssl.SSLContext | None) -> None:
        accepted.settimeout(0)
        self._waiting[connection] = accepted
        handshake = self._loop.create_task(self._establish(connection, tls), name="handshake")
        self._handshakes[connection] = handshake
        handshake.add_done_callback(lambda _: self._handshake_ended(connection))

    def _handshake_ended(self, connection: Connection) -> None:
        del self._handshakes[connection]
        if waiting := self._waiting.pop(connection, None):
            waiting.close()

    def _add(self, limit: ConnectionLimit[Connection], connection: Connection) -> None:
        if excess := limit.add(connection, self._loop.time()):
            self.drop(excess, "too_many_connections")

    @property
    def _limits(self) -> tuple[ConnectionLimit[Connection], ...]:
        return self._unauthenticated, self._authenticated, self._front_proxy

    def _count_dropped(self, reason: str) -> None:
        self._accounting.telemetry.connections_dropped.labels(reason).inc()

    def _forget(self, connection: Connection) -> None:
        for limit in self._limits:
            limit.remove(connection)

    async def _establish(self, connection: Connection, tls: ssl.SSLContext | None) -> None:
        """Perform the TLS handshake; the connection then serves itself."""
        accepted = self._waiting.pop(connection)
        timeouts = (self.limits.header_timeout.total_seconds(), _TLS_SHUTDOWN_TIMEOUT) if tls else (None, None)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=tls,
                ssl_handshake_timeout=timeouts[0],
                ssl_shutdown_timeout=timeouts[1],
            )
        except OSError:  # includes ssl.SSLError and TimeoutError
            pass
        finally:
            if connection.transport is None:
                self._forget(connection)

    def _create_request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: Connection,
        writer: AbstractStreamWriter,
        task: _RequestTask,
    ) -> web.BaseRequest:
        protocol.start_request(message, payload)
        return web.BaseRequest(message, payload, protocol, writer, task, self._loop)


def listen(address: str, port: int) -> socket.socket:
    """Return a non-blocking listening socket; raise ``CannotListen`` if the address or the port is not available."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        listening = socket.create_server((address, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        host = f"[{address}]" if ":" in address else address
        raise CannotListen(f"cannot listen on {host}:{port}: {reason}") from None
    # Accepted sockets inherit the sizes; by default the kernel lets a client fill several MiB.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BUFFER)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER)
    listening.settimeout(0)
    return listening
