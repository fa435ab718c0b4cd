"""Connections that can be ended from another thread, in whatever they are waiting for.

A time limit on a socket starts anew with every byte, so a server that drips would keep a thread for ever. So a call
keeps a second handle on the socket it uses: shut down through that, shaking hands, sending and reading all end at once.
"""

import os
import socket
import threading
import time
from contextlib import suppress
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

_here = threading.local()


class Call:
    """One question to the server: who waits for the answer may end it."""

    def __init__(self, ends: float) -> None:
        self.ends = ends
        """When its time is up, by the clock that is never set back."""
        self._lock = threading.Lock()
        self._handle: socket.socket | None = None
        self.is_over = False

    def __enter__(self) -> None:
        _here.call = self

    def __exit__(self, *_: object) -> None:
        _here.call = None
        self._hold(None)  # the connection may serve another call from now on

    @property
    def seconds_left(self) -> float:
        """How long it may still take; never nothing, which to a socket would mean for ever."""
        return max(self.ends - time.monotonic(), 0.001)

    def adopt(self, used: socket.socket) -> None:
        """Keep a handle on the connection that this call is using."""
        # Not used.dup(): a TLS socket has none, and while hands are shaken the plain one is taken apart.
        self._hold(socket.socket(fileno=os.dup(used.fileno())))

    def end(self) -> None:
        """End it: whoever works on it is thrown out of any wait."""
        with self._lock:
            self.is_over = True
            self._cut()

    def _hold(self, handle: socket.socket | None) -> None:
        with self._lock:
            before, self._handle = self._handle, handle
            if self.is_over:
                self._cut()
        if before is not None:
            before.close()

    def _cut(self) -> None:
        if self._handle is not None:
            with suppress(OSError):
                self._handle.shutdown(socket.SHUT_RDWR)


def current() -> Call:
    """Return the call that this thread works on."""
    call: Call = _here.call
    return call


class _Endable(HTTPConnection):
    """A connection that tells the call of its thread which socket it uses."""

    def _new_conn(self) -> socket.socket:
        made = super()._new_conn()
        current().adopt(made)
        return made

    def request(self, *words: Any, **options: Any) -> None:  # noqa: ANN401 - handed on as they are
        if self.sock is not None:
            current().adopt(self.sock)
        super().request(*words, **options)


class _EndableTls(_Endable, HTTPSConnection):
    """The same, encrypted."""


class PlainPool(HTTPConnectionPool):
    """Plain connections to one server."""

    ConnectionCls = _Endable


class TlsPool(HTTPSConnectionPool):
    """Encrypted connections to one server."""

    ConnectionCls = _EndableTls

    def _validate_conn(self, conn: Any) -> None:  # noqa: ANN401 - the library does not say what it may be
        """Connect, and do not warn of a server that is not verified at every request: the setting says so."""
        if conn.is_closed:
            conn.connect()
