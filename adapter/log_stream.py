"""A stream for log lines that never blocks the process, even if standard error is a full pipe that no process reads."""

import logging
import os
import select
import threading
from typing import Final

_log = logging.getLogger(__name__)

_MAX_PENDING_BYTES: Final = 1 << 20
_CHUNK_BYTES: Final = select.PIPE_BUF
"""A pipe that polls as writable accepts this many bytes without blocking."""


class LogStream:
    """Writes to a file descriptor if that does not block; otherwise the lines wait for the next write.

    At most 1 MiB waits. Lines beyond that are dropped and counted, and the count is logged when writing is possible
    again.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._pending = bytearray()
        self._dropped_lines = 0
        self._lock = threading.RLock()  # logging below, while the lock is held, calls write() again

    def write(self, line: str) -> None:
        encoded = line.encode(errors="backslashreplace")
        with self._lock:
            if len(self._pending) + len(encoded) > _MAX_PENDING_BYTES:
                self._dropped_lines += 1
            else:
                self._pending += encoded
            self.flush()

    def flush(self) -> None:
        """Write as much as is possible without blocking."""
        with self._lock:
            try:
                while self._pending and self._poll.poll(0):
                    written = os.write(self._descriptor, self._pending[:_CHUNK_BYTES])
                    del self._pending[:written]
            except BlockingIOError:
                return
            except OSError:  # the reader closed the pipe
                self._pending.clear()
            if self._dropped_lines and not self._pending:
                lines, self._dropped_lines = self._dropped_lines, 0
                _log.warning("log lines dropped, because standard error was not read", extra={"lines": lines})
