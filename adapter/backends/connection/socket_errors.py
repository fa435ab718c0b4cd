"""Translation of connection errors. Libraries wrap the exceptions of sockets, so all causes of an exception count."""

import socket
import ssl
from collections.abc import Iterator
from typing import Final, TypeAlias

from adapter.errors import BackendError, BackendTimeout, BackendUnreachable

CauseTable: TypeAlias = tuple[tuple[type[BaseException], type[BackendError], str], ...]
"""For each exception type of a cause: the error to raise and its message."""

BY_CAUSE: Final[CauseTable] = (
    (ssl.SSLError, BackendUnreachable, "TLS handshake failed: certificate not accepted"),
    (ssl.CertificateError, BackendUnreachable, "TLS handshake failed: certificate not accepted"),
    (ConnectionRefusedError, BackendUnreachable, "connection refused"),
    (socket.gaierror, BackendUnreachable, "host name does not resolve"),
    (TimeoutError, BackendTimeout, "no response in time"),
)


def from_exception(error: BaseException, table: CauseTable = BY_CAUSE) -> BackendError:
    """Return the error for an exception, by the first of its causes that is in the table."""
    for cause in causes(error):
        for exception_type, error_type, message in table:
            if isinstance(cause, exception_type):
                reason = getattr(cause, "reason", None)
                return error_type(message, detail=reason if isinstance(reason, str) else type(error).__name__)
    return BackendUnreachable("connection lost", detail=type(error).__name__)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Return an exception and its causes; libraries put them into arguments and attributes."""
    seen: set[int] = set()
    pending = [error]
    while pending:
        cause = pending.pop()
        if id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            attributes = (getattr(cause, "os_error", None), getattr(cause, "reason", None))
            candidates = (cause.__cause__, cause.__context__, *attributes, *cause.args)
            pending += [inner for inner in candidates if isinstance(inner, BaseException)]
