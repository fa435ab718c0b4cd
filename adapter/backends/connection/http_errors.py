"""Translation of HTTP statuses and of aiohttp's exceptions.

The message of an error stays the same while its cause does; the server's own text is in ``detail``.
"""

from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError, HttpProcessingError, PayloadEncodingError

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

MAX_DETAIL: Final = 300
_BY_STATUS: Final[dict[int, type[BackendError]]] = {
    400: BadQuery,
    401: BackendUnauthorized,
    403: BackendUnauthorized,
    407: BackendUnreachable,
    422: BadQuery,
    429: BackendBusy,
    502: BackendUnreachable,
    503: BackendUnreachable,
    504: BackendTimeout,
}
_BY_CAUSE: Final[socket_errors.CauseTable] = (
    *socket_errors.BY_CAUSE,
    (ContentEncodingError, BackendRejected, "the response cannot be decoded"),
    (PayloadEncodingError, BackendUnreachable, "connection lost"),  # the response is incomplete
    (aiohttp.ClientResponseError, BackendRejected, "the response is not valid HTTP"),
    (HttpProcessingError, BackendRejected, "the response is not valid HTTP"),
    (aiohttp.InvalidURL, BadQuery, "invalid URL"),
)


def from_status(status: int, body: bytes = b"") -> BackendError:
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    error_type = _BY_STATUS.get(status, BackendRejected)
    return error_type(f"HTTP {status} {phrase}".strip(), detail=body[:MAX_DETAIL].decode("utf-8", "replace"))


def from_exception(error: Exception) -> BackendError:
    """Return the error for a request without a response."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return BackendUnreachable("the proxy rejected the connection", detail=f"HTTP {error.status}")
    return socket_errors.from_exception(error, _BY_CAUSE)
