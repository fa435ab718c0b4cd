"""Translation of Prometheus' error responses."""

from http import HTTPStatus
from typing import Final

from adapter.backends.connection import http_errors
from adapter.errors import BackendError, BackendTimeout, BackendUnreachable, BadQuery

_BY_TYPE: Final[dict[str, type[BackendError]]] = {
    "bad_data": BadQuery,
    "execution": BadQuery,
    "timeout": BackendTimeout,
    "canceled": BackendTimeout,
    "unavailable": BackendUnreachable,
}


def from_response(status: int, error_type: str, text: str) -> BackendError:
    """Return the error for an error response; some proxies send one with status 200."""
    error = http_errors.from_status(status, text.encode())
    if error_type == "bad_data":
        error.message = error.detail  # Prometheus' explanation of the query's mistake, the same for the same query
    elif error_type:
        error.message += f" ({error_type})"
    by_type = status == HTTPStatus.OK or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    error_class = _BY_TYPE.get(error_type, type(error)) if by_type else type(error)
    return error_class(error.message, detail=error.detail)
