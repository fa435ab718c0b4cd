"""What went wrong over HTTP, as one of our errors: the class says whose turn it is, the words stay the same.

What the server said word for word is the error's ``detail``, for the log and for debugging.
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

_LONGEST: Final = 300
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
_BY_CAUSE: Final[tuple[tuple[type[BaseException], type[BackendError], str], ...]] = (
    *socket_errors.BY_CAUSE,
    (ContentEncodingError, BackendRejected, "the answer cannot be decoded"),
    (PayloadEncodingError, BackendUnreachable, "the connection broke"),  # it ended before it was complete
    (aiohttp.ClientResponseError, BackendRejected, "it answers, but not in HTTP"),
    (HttpProcessingError, BackendRejected, "it answers, but not in HTTP"),
    (aiohttp.InvalidURL, BadQuery, "that is no URL to ask"),
)


def of_status(status: int, body: bytes = b"") -> BackendError:
    """Say what a status other than 200 means."""
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    kind = _BY_STATUS.get(status, BackendRejected)
    return kind(f"HTTP {status} {phrase}".strip(), detail=body[:_LONGEST].decode("utf-8", "replace"))


def of_exception(error: Exception) -> BackendError:
    """Say why there was no answer at all."""
    detail = type(error).__name__
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return BackendUnreachable("the proxy does not let us through", detail=f"HTTP {error.status}")
    for cause in socket_errors.causes(error):
        for kind, made, words in _BY_CAUSE:
            if isinstance(cause, kind):
                return made(words, detail=str(getattr(cause, "reason", None) or detail))
    return BackendUnreachable("the connection broke", detail=detail)
