"""Translation of NATS errors and of nats-py's exceptions."""

from typing import Final

from nats import errors

from adapter.backends.connection import socket_errors
from adapter.errors import BackendBusy, BackendError, BackendRejected, BackendUnauthorized

PERMISSION_DENIED: Final = "permission denied: the user may not use the JetStream API"
UNEXPECTED: Final = "unexpected response format"
_MAX_DETAIL: Final = 300
_LOGIN_FAILED: Final = "authentication failed: check the credentials"
_BY_TEXT: Final[tuple[tuple[str, type[BackendError], str], ...]] = (
    ("permissions violation", BackendUnauthorized, PERMISSION_DENIED),
    ("authorization", BackendUnauthorized, _LOGIN_FAILED),
    ("authentication", BackendUnauthorized, _LOGIN_FAILED),
    ("credentials", BackendUnauthorized, _LOGIN_FAILED),
    ("connections exceeded", BackendBusy, "the server has reached its maximum number of connections"),
)
"""By text, because NATS errors have no codes."""

_CONNECTION_ERRORS: Final = (OSError, errors.StaleConnectionError, errors.ConnectionClosedError, errors.TimeoutError)


def from_exception(error: BaseException | None, host: str = "") -> BackendError:
    """Return the error for an exception of nats-py; None means that the connection was closed."""
    if isinstance(error, BackendError):
        return error
    detail = str(error)[:_MAX_DETAIL]
    for text, error_type, message in _BY_TEXT:
        if isinstance(error, errors.Error) and text in detail.lower():
            return error_type(message, detail=detail)
    if isinstance(error, errors.NoRespondersError):
        return BackendRejected("JetStream does not respond: it is not enabled, or domain or apiPrefix is wrong")
    if error is None or isinstance(error, _CONNECTION_ERRORS):
        return socket_errors.from_exception(error or ConnectionError(), host=host)
    return BackendRejected(UNEXPECTED, detail=type(error).__name__)
