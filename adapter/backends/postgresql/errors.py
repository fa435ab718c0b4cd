"""Translation of PostgreSQL errors, by their SQLSTATE, and of asyncpg's exceptions."""

from typing import Final

import asyncpg

from adapter.backends.connection import socket_errors
from adapter.errors import (
    BackendBusy,
    BackendError,
    BackendRejected,
    BackendTimeout,
    BackendUnauthorized,
    BackendUnreachable,
    BadQuery,
)

_MAX_DETAIL: Final = 300
_UNEXPECTED: Final = "unexpected response format"
_READ_ONLY: Final = "the query must be read-only"
_BY_SQLSTATE: Final[dict[str, tuple[type[BackendError], str]]] = {
    "25001": (BadQuery, _READ_ONLY),
    "25006": (BadQuery, _READ_ONLY),
    "28": (BackendUnauthorized, "authentication failed: check username, passwordFile and pg_hba.conf"),
    "42501": (BackendUnauthorized, "permission denied: the user needs SELECT"),
    "3D": (BackendRejected, "the database does not exist"),
    "53300": (BackendBusy, "the server has reached its maximum number of connections"),
    "53": (BackendBusy, "the server has insufficient resources"),
    "57014": (BackendTimeout, "the query was canceled"),
    "57": (BackendUnreachable, "the server is starting up or shutting down"),
    "08P01": (BackendRejected, _UNEXPECTED),
    "08": (BackendUnreachable, "connection lost"),
    "0A": (BadQuery, "the query is invalid"),
    "21": (BadQuery, "the query failed on its data"),
    "22": (BadQuery, "the query failed on its data"),
    "42": (BadQuery, "the query is invalid"),
    "P0": (BadQuery, "the query failed on its data"),
}
"""By SQLSTATE, or by its class, which is its first two characters."""

_BY_CAUSE: Final[tuple[tuple[type[BaseException], type[BackendError], str], ...]] = (
    *socket_errors.BY_CAUSE,
    (OSError, BackendUnreachable, "connection lost"),
    (asyncpg.UnsupportedClientFeatureError, BadQuery, "a column has an unsupported type: cast it in the query"),
    (asyncpg.UnsupportedServerFeatureError, BackendRejected, _UNEXPECTED),
    (asyncpg.InterfaceError, BackendUnreachable, "connection lost"),  # between two steps of the protocol
)
ASYNCPG_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    ValueError,
)
"""All exceptions of asyncpg; a timeout is an OSError."""


def from_exception(error: Exception, host: str = "") -> BackendError:
    """Return the error for an exception of asyncpg; the text of the server becomes the detail."""
    if isinstance(error, asyncpg.PostgresError):
        return _from_sqlstate(error)
    # Without the text of the error: what the server sent before TLS is not trusted.
    if type(error) is ConnectionError and "SSL" in str(error):
        return BackendRejected("the server does not support TLS, or is not PostgreSQL")
    for exception_type, error_type, message in _BY_CAUSE:
        if isinstance(error, exception_type):
            named = socket_errors.name_host(message, host)
            return error_type(named, detail=str(getattr(error, "reason", None) or type(error).__name__))
    return BackendRejected(_UNEXPECTED, detail=type(error).__name__)


def _from_sqlstate(error: asyncpg.PostgresError) -> BackendError:
    state = str(error.sqlstate or "")
    default = (BackendRejected, "the server rejected the query")
    error_type, message = _BY_SQLSTATE.get(state) or _BY_SQLSTATE.get(state[:2]) or default
    if not state.startswith(("08", "57")):
        message = f"{message} ({state} {type(error).__name__.removesuffix('Error')})"
    return error_type(message, detail=str(error)[:_MAX_DETAIL])
