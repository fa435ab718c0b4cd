"""What went wrong with PostgreSQL, as one of our errors: by its SQLSTATE where it said one."""

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

_LONGEST: Final = 300
_BY_STATE: Final[dict[str, tuple[type[BackendError], str]]] = {
    "25001": (BadQuery, "the query may only read"),
    "25006": (BadQuery, "the query may only read"),
    "28": (BackendUnauthorized, "it does not let us in"),
    "42501": (BackendUnauthorized, "our user may not read that"),
    "3D": (BackendRejected, "there is no such database"),
    "53300": (BackendBusy, "it has too many connections"),
    "53": (BackendBusy, "it has not enough resources"),
    "57014": (BackendTimeout, "it was cancelled"),
    "57": (BackendUnreachable, "it is starting or going down"),
    "08P01": (BackendRejected, "it answers, but not as PostgreSQL does"),
    "08": (BackendUnreachable, "the connection broke"),
    "0A": (BadQuery, "it does not understand the query"),
    "21": (BadQuery, "the query fails on what it finds"),
    "22": (BadQuery, "the query fails on what it finds"),
    "42": (BadQuery, "it does not understand the query"),
    "P0": (BadQuery, "the query fails on what it finds"),
}
"""By SQLSTATE or its first two characters, which are its class."""

_BY_CAUSE: Final[tuple[tuple[type[BaseException], type[BackendError], str], ...]] = (
    *socket_errors.BY_CAUSE,
    (OSError, BackendUnreachable, "the connection broke"),
    (asyncpg.UnsupportedClientFeatureError, BadQuery, "a column has a type that cannot be read"),
    (asyncpg.UnsupportedServerFeatureError, BackendRejected, "it answers, but not as PostgreSQL does"),
    (asyncpg.InterfaceError, BackendUnreachable, "the connection broke"),  # it was lost between two steps
)
LIBRARY: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, ValueError)
"""All that the library raises; a time-out is an OSError."""


def of_exception(error: Exception) -> BackendError:
    """Say what is the matter; the server's own words are the detail."""
    if isinstance(error, asyncpg.PostgresError):
        return _of_state(error)
    if type(error) is ConnectionError and "SSL" in str(error):  # what the server said before TLS was not to be trusted
        return BackendRejected("it does not offer TLS, or is no PostgreSQL")
    for kind, made, words in _BY_CAUSE:
        if isinstance(error, kind):
            return made(words, detail=str(getattr(error, "reason", None) or type(error).__name__))
    return BackendRejected("it answers, but not as PostgreSQL does", detail=type(error).__name__)


def _of_state(error: asyncpg.PostgresError) -> BackendError:
    state = str(error.sqlstate or "")
    made, words = _BY_STATE.get(state) or _BY_STATE.get(state[:2]) or (BackendRejected, "it refuses the query")
    told = words if state.startswith(("08", "57")) else f"{words} ({state} {_name(error)})"
    return made(told, detail=str(error)[:_LONGEST])


def _name(error: asyncpg.PostgresError) -> str:
    return type(error).__name__.removesuffix("Error")
