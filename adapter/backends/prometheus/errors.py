"""What went wrong, as one of our errors: the class says whose turn it is, the words stay the same while the cause does.

What the server said word for word is the error's ``detail``, for the log and for debugging.
"""

import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus

import msgspec
from requests import exceptions

from adapter.errors import (
    BackendBusy,
    BackendError,
    BackendRejected,
    BackendTimeout,
    BackendUnauthorized,
    BackendUnreachable,
    BadQuery,
)

_LONGEST = 300
_BY_STATUS: dict[int, type[BackendError]] = {
    400: BadQuery,
    401: BackendUnauthorized,
    403: BackendUnauthorized,
    422: BadQuery,
    429: BackendBusy,
    502: BackendUnreachable,
    503: BackendUnreachable,
    504: BackendTimeout,
}
_BY_TYPE: dict[str, type[BackendError]] = {
    "bad_data": BadQuery,
    "execution": BadQuery,
    "timeout": BackendTimeout,
    "canceled": BackendTimeout,
    "unavailable": BackendUnreachable,
}


class Refusal(msgspec.Struct):
    """The body of a refusal, as Prometheus writes it."""

    status: str
    error_type: str = msgspec.field(name="errorType", default="")
    error: str = ""


def of_status(status: int, body: bytes) -> BackendError:
    """Say what an HTTP status other than 200 means, with the body if it is one of Prometheus'."""
    try:
        refusal = msgspec.json.decode(body, type=Refusal)
    except msgspec.DecodeError:
        refusal = Refusal("", "", body[:_LONGEST].decode("utf-8", "replace"))
    kind = _BY_STATUS.get(status, BackendRejected)
    if refusal.status == "error" and status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        kind = _BY_TYPE.get(refusal.error_type, kind)
    return kind(_words(status, refusal), detail=refusal.error[:_LONGEST])


def of_refusal(refusal: Refusal) -> BackendError:
    """Say what an error in a 200 means; some proxies send that."""
    return _BY_TYPE.get(refusal.error_type, BackendRejected)(_words(200, refusal), detail=refusal.error[:_LONGEST])


def of_exception(error: Exception) -> BackendError:
    """Say why there was no answer at all."""
    detail = type(error).__name__
    if isinstance(error, exceptions.Timeout):
        return BackendTimeout("no answer in time", detail=detail)
    if isinstance(error, exceptions.SSLError):
        why = next((str(each.reason) for each in _causes(error) if isinstance(each, ssl.SSLError)), detail)
        return BackendUnreachable("its certificate or ours was not accepted", detail=why)
    if isinstance(error, exceptions.ProxyError):
        return BackendUnreachable("the proxy does not let us through", detail=detail)
    if isinstance(error, exceptions.ContentDecodingError):
        return BackendRejected("the answer cannot be decoded", detail=detail)
    for cause in _causes(error):
        if isinstance(cause, ConnectionRefusedError):
            return BackendUnreachable("connection refused", detail=detail)
        if isinstance(cause, socket.gaierror):
            return BackendUnreachable("its name does not resolve", detail=detail)
        if isinstance(cause, TimeoutError):
            return BackendTimeout("no answer in time", detail=detail)
    return BackendUnreachable("the connection broke", detail=detail)


def _words(status: int, refusal: Refusal) -> str:
    if refusal.error_type == "bad_data":
        return refusal.error[:_LONGEST]  # about the query alone, so the same for the same query
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    return " ".join(
        part for part in (f"HTTP {status}", phrase, f"({refusal.error_type})" * bool(refusal.error_type)) if part
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Walk down to what the operating system said; libraries wrap it in argument after argument."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        inner = [each.__cause__, each.__context__, getattr(each, "reason", None), *each.args]
        waiting += [cause for cause in inner if isinstance(cause, BaseException)]
