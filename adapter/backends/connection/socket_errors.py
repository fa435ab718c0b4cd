"""Translation of connection errors. Libraries wrap the exceptions of sockets, so all causes of an exception count."""

import socket
import ssl
from collections.abc import Iterator
from typing import Final, TypeAlias

from adapter.errors import BackendError, BackendTimeout, BackendUnreachable

CauseTable: TypeAlias = tuple[tuple[type[BaseException], type[BackendError], str], ...]
"""For each exception type of a cause: the error to raise and its message."""

_UNRESOLVED: Final = "host name does not resolve"
BY_CAUSE: Final[CauseTable] = (
    (ssl.SSLError, BackendUnreachable, "TLS handshake failed: certificate not accepted"),
    (ssl.CertificateError, BackendUnreachable, "TLS handshake failed: certificate not accepted"),
    (ConnectionRefusedError, BackendUnreachable, "connection refused"),
    (socket.gaierror, BackendUnreachable, _UNRESOLVED),
    (TimeoutError, BackendTimeout, "no response in time"),
)


def from_exception(error: BaseException, table: CauseTable = BY_CAUSE, host: str = "") -> BackendError:
    """Return the error for an exception, by the first of its causes that is in the table.

    ``host`` is the host of the server. Exceptions of aiohttp have the host, which can be that of a proxy.
    """
    for cause in causes(error):
        for exception_type, error_type, text in table:
            if isinstance(cause, exception_type):
                hosts = (found for each in causes(error) if isinstance(found := getattr(each, "host", None), str))
                message = name_host(text, next(hosts, host))
                reason = getattr(cause, "reason", None)
                return error_type(message, detail=reason if isinstance(reason, str) else type(error).__name__)
    return BackendUnreachable("connection lost", detail=type(error).__name__)


def name_host(message: str, host: str) -> str:
    """Return the message of a table with the host if the name of the host is the cause."""
    return f"host name {host!r} does not resolve" if message == _UNRESOLVED and host else message


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
