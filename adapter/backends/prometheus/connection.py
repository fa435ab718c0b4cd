"""urllib3 connections that another thread can abort at any point: handshake, sending or reading.

A socket timeout restarts with each received byte, so a server that sends one byte at a time would occupy a thread for
ever. Therefore an ``AbortableRequest`` holds a duplicate of the file descriptor of its socket and shuts it down.
"""

import os
import socket
import threading
import time
from contextlib import suppress
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

_thread = threading.local()


class AbortableRequest:
    """One request; used as a context manager by the thread that sends it."""

    def __init__(self, ends: float) -> None:
        self.ends = ends
        """When the request times out, on the monotonic clock."""
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.is_aborted = False

    def __enter__(self) -> None:
        _thread.request = self

    def __exit__(self, *_: object) -> None:
        _thread.request = None
        self._replace_socket(None)  # the connection may be reused by another request

    @property
    def seconds_left(self) -> float:
        """Return the time until the timeout; always positive, because zero disables a socket's timeout."""
        return max(self.ends - time.monotonic(), 0.001)

    def use_socket(self, used: socket.socket) -> None:
        """Remember the socket that this request uses."""
        # Not used.dup(): TLS sockets have none, and the handshake detaches the plain socket.
        self._replace_socket(socket.socket(fileno=os.dup(used.fileno())))

    def abort(self) -> None:
        """Shut the socket down, which ends any blocking call of the sending thread."""
        with self._lock:
            self.is_aborted = True
            self._shut_down()

    def _replace_socket(self, new: socket.socket | None) -> None:
        with self._lock:
            old, self._socket = self._socket, new
            if self.is_aborted:
                self._shut_down()
        if old is not None:
            old.close()

    def _shut_down(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


def current_request() -> AbortableRequest:
    """Return the request that this thread sends."""
    request: AbortableRequest = _thread.request
    return request


class AbortableConnection(HTTPConnection):
    """A connection that reports its socket to the request of the current thread."""

    def _new_conn(self) -> socket.socket:
        # Not connect(): that returns after the TLS handshake, which must be abortable, too.
        created = super()._new_conn()
        current_request().use_socket(created)
        return created

    def request(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - passed through
        """Send a request; a reused connection is reported here."""
        if self.sock is not None:
            current_request().use_socket(self.sock)
        super().request(*arguments, **options)


class AbortableTlsConnection(AbortableConnection, HTTPSConnection):
    """The same with TLS."""


class AbortablePool(HTTPConnectionPool):
    """The pool of plain connections to one server."""

    ConnectionCls = AbortableConnection


class AbortableTlsPool(HTTPSConnectionPool):
    """The pool of TLS connections to one server."""

    ConnectionCls = AbortableTlsConnection
