"""Translation of Prometheus' error responses and of the exceptions of requests and urllib3."""

from http import HTTPStatus
from typing import Final

import msgspec
from requests import exceptions

from adapter.backends.connection import http_errors, socket_errors
from adapter.errors import BackendError, BackendRejected, BackendTimeout, BackendUnreachable, BadQuery

_BY_TYPE: Final[dict[str, type[BackendError]]] = {
    "bad_data": BadQuery,
    "execution": BadQuery,
    "timeout": BackendTimeout,
    "canceled": BackendTimeout,
    "unavailable": BackendUnreachable,
}
_BY_CAUSE: Final[socket_errors.CauseTable] = (
    (exceptions.Timeout, BackendTimeout, "no response in time"),
    (exceptions.ProxyError, BackendUnreachable, "the proxy rejected the connection"),
    (exceptions.ContentDecodingError, BackendRejected, "the response cannot be decoded"),
    *socket_errors.BY_CAUSE,
)


class ErrorBody(msgspec.Struct):
    """The body of an error response of Prometheus."""

    status: str
    error_type: str = msgspec.field(name="errorType", default="")
    error: str = ""


def from_status(status: int, body: bytes) -> BackendError:
    """Return the error for a status other than 200; not all of these responses come from Prometheus itself."""
    try:
        return from_body(status, msgspec.json.decode(body, type=ErrorBody))
    except msgspec.DecodeError:
        return http_errors.from_status(status, body)


def from_body(status: int, body: ErrorBody) -> BackendError:
    """Return the error for an error body; some proxies send one with status 200."""
    error = http_errors.from_status(status, body.error.encode())
    if body.error_type == "bad_data":
        error.message = error.detail  # Prometheus' explanation of the query's mistake, the same for the same query
    elif body.error_type:
        error.message += f" ({body.error_type})"
    by_type = status == HTTPStatus.OK or (body.status == "error" and status >= HTTPStatus.INTERNAL_SERVER_ERROR)
    error_type = _BY_TYPE.get(body.error_type, type(error)) if by_type else type(error)
    return error_type(error.message, detail=error.detail)


def from_exception(error: Exception) -> BackendError:
    """Return the error for a request without a response."""
    return socket_errors.from_exception(error, _BY_CAUSE)
