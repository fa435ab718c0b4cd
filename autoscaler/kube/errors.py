"""Errors of the Kubernetes API as exception types, so that callers handle types instead of status codes.

::

    KubeError
    ├── BadRequest        400, 422   the request is invalid; a retry would fail as well
    ├── Unauthorized      401        authentication failed
    ├── Forbidden         403        authorization failed
    ├── NotFound          404        no such object or kind
    ├── Conflict          409        the object has changed: read it again
    │   └── AlreadyExists            the object exists already
    ├── Expired           410        the resourceVersion is too old: list again
    ├── TooManyRequests   429        rate limited; `retry_after` is the server's delay
    └── Unavailable       5xx        server error, connection error, timeout or malformed response
        ├── RequestNotSent           no credentials or no connection: a write was certainly not applied
        ├── MalformedResponse        the response cannot be decoded
        └── ResponseTooLarge         the response exceeds the size limit: request less
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

MAX_MESSAGE_LENGTH: Final = 512
"""Limits log lines: a proxy may respond with a whole HTML page."""

MAX_RETRY_AFTER: Final = timedelta(seconds=30)
"""Limits ``Retry-After``: a longer delay would stop a watch for as long."""


class KubeError(Exception):
    """A request to the Kubernetes API failed."""

    def __init__(
        self, message: str, *, code: int = 0, retry_after: timedelta | None = None, server_message: str | None = None
    ) -> None:
        super().__init__(message[:MAX_MESSAGE_LENGTH])
        self.code = code
        self.retry_after = retry_after
        self.server_message = server_message
        """The unabridged message of the Status response, if there was one; conditions and events quote it."""


class BadRequest(KubeError):
    """The request is invalid; a retry would fail as well."""


class Unauthorized(KubeError):
    """Authentication failed: the credentials are invalid or have expired."""


class Forbidden(KubeError):
    """Authorization failed: RBAC does not allow the request."""


class NotFound(KubeError):
    """The object or its kind does not exist."""


class Conflict(KubeError):
    """The object has changed since it was read."""


class AlreadyExists(Conflict):
    """The object exists already."""


class Expired(KubeError):
    """The resourceVersion is no longer available; a new list is required."""


class TooManyRequests(KubeError):
    """The server limits the request rate."""


class Unavailable(KubeError):
    """The server failed, could not be reached, did not respond in time, or sent a malformed response."""


class RequestNotSent(Unavailable):
    """The request was not sent, because there were no credentials or no connection."""


class MalformedResponse(Unavailable):
    """The response cannot be decoded."""


class ResponseTooLarge(Unavailable):
    """The response exceeds the size limit."""


_REFUSED_BY_WEBHOOK: Final = "failed calling webhook"
"""Part of the API server's message if a request was refused because a webhook failed; the code is 500."""

_REQUEST_TIMEOUT: Final = 408

NO_RESOURCE: Final = "the server could not find the requested resource"

_BY_CODE: Final[Mapping[int, tuple[type[KubeError], str]]] = {
    400: (BadRequest, "the server rejected our request for an unknown reason"),
    401: (Unauthorized, "the server has asked for the client to provide credentials"),
    403: (Forbidden, "the server does not allow access to the requested resource"),
    404: (NotFound, NO_RESOURCE),
    405: (BadRequest, "the server does not allow this method on the requested resource"),
    409: (Conflict, "the server reported a conflict"),
    410: (Expired, NO_RESOURCE),
    422: (BadRequest, "the server rejected our request due to an error in our request"),
    429: (TooManyRequests, "the server has received too many requests and has asked us to try again later"),
    503: (Unavailable, "the server is currently unable to handle the request"),
    504: (
        Unavailable,
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}
"""The type of each status code, and the message that client-go derives from it if the response has none."""


def error_for_response(code: int, body: bytes, retry_after: str | None = None) -> KubeError:
    status = _status(body)
    kind, _ = _BY_CODE.get(code, (Unavailable if code >= 500 else BadRequest, ""))
    if kind is Conflict and status.get("reason") == "AlreadyExists":
        kind = AlreadyExists
    text = status.get("message")
    server_message = text if isinstance(text, str) and text else None
    message = server_message or body[:MAX_MESSAGE_LENGTH].decode(errors="replace").strip() or "no message"
    return kind(f"{code}: {message}", code=code, retry_after=_delay(retry_after), server_message=server_message)


def is_outcome_unknown(error: KubeError) -> bool:
    """Return whether a write that ended with this error may have been applied, or may still be applied.

    The API server applies nothing that it answers with a code below 500. A 5xx can come from a load balancer, and the
    API server answers so as well if etcd did not respond in time.
    """
    if isinstance(error, RequestNotSent) or _REFUSED_BY_WEBHOOK in (error.server_message or ""):
        return False
    return isinstance(error, Unavailable) or error.code == _REQUEST_TIMEOUT


def describe(error: BaseException) -> str:
    """Return the message of an error, or its type if it has none, such as a TimeoutError."""
    return str(error).strip()[:MAX_MESSAGE_LENGTH] or type(error).__name__


def client_go_message(error: KubeError, action: str) -> str:
    """Return the exact message of client-go, for conditions and events.

    ``action`` is verb and resource, such as ``get web.apps``.
    """
    if error.server_message is not None:
        return error.server_message
    if error.code == 0:
        return str(error)  # no response was received
    unknown = f"an error on the server ({str(error)!r}) has prevented the request from succeeding"
    _, message = _BY_CODE.get(error.code, (KubeError, unknown))
    return f"{message} ({action})"


def _delay(retry_after: str | None) -> timedelta | None:
    """Return the delay of a ``Retry-After`` header, limited; None if there is none or it is not a number."""
    if not retry_after or not (retry_after.isascii() and retry_after.isdigit()):
        return None
    digits = len(str(MAX_RETRY_AFTER.seconds))
    is_long = len(retry_after.lstrip("0")) > digits
    return MAX_RETRY_AFTER if is_long else min(timedelta(seconds=int(retry_after[-digits:])), MAX_RETRY_AFTER)


def _status(body: bytes) -> Mapping[str, object]:
    try:
        status = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) else {}
