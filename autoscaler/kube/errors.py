"""The API server's refusals as types, so that what to do next is a matter of ``except``, not of status codes.

::

    KubeError
    ├── BadRequest        400, 422   what we sent is wrong; sending it again is, too
    ├── Unauthorized      401        it does not know us
    ├── Forbidden         403        it knows us, and no
    ├── NotFound          404        no such object, or no such kind
    ├── Conflict          409        someone else wrote first: look again
    │   └── AlreadyExists            someone else created it first
    ├── Expired           410        that resourceVersion is too old to go on from: list again
    ├── TooManyRequests   429        later; `retry_after` says when
    └── Unavailable       5xx        it could not answer, or could not be reached, or not in time
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

LONGEST_MESSAGE: Final = 512
"""A refusal is logged; a log line is not the place for a proxy's whole error page."""


class KubeError(Exception):
    """The Kubernetes API did not do what it was asked."""

    def __init__(
        self, message: str, *, code: int = 0, retry_after: timedelta | None = None, said: str | None = None
    ) -> None:
        super().__init__(message[:LONGEST_MESSAGE])
        self.code = code
        self.retry_after = retry_after
        self.said = said
        """The server's own sentence, whole, where it gave one in a Status; conditions and events quote it."""


class BadRequest(KubeError):
    """What we sent is wrong, and will be wrong again."""


class Unauthorized(KubeError):
    """Our credentials are not known, or no longer."""


class Forbidden(KubeError):
    """Our credentials are known, and not enough."""


class NotFound(KubeError):
    """There is no such object, or no such kind."""


class Conflict(KubeError):
    """The object changed since we read it."""


class AlreadyExists(Conflict):
    """The object was created by someone else, or by us before."""


class Expired(KubeError):
    """The resourceVersion we named is no longer kept; only a new list helps."""


class TooManyRequests(KubeError):
    """The server is busy and asks for patience."""


class Unavailable(KubeError):
    """The server could not answer, could not be reached, or was too slow."""


_BY_CODE: Final[Mapping[int, type[KubeError]]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: BadRequest,
    429: TooManyRequests,
}


def refusal(code: int, body: bytes, retry_after: str | None = None) -> KubeError:
    """Make the error that an answer other than 2xx stands for."""
    status = _status(body)
    kind = _BY_CODE.get(code, Unavailable if code >= 500 else BadRequest)
    if kind is Conflict and status.get("reason") == "AlreadyExists":
        kind = AlreadyExists
    message = str(status.get("message") or body.decode(errors="replace").strip() or "no explanation was given")
    wait = timedelta(seconds=int(retry_after)) if retry_after and retry_after.isdigit() else None
    said = status.get("message")
    return kind(f"{code}: {message}", code=code, retry_after=wait, said=str(said) if said else None)


def _status(body: bytes) -> Mapping[str, object]:
    try:
        status = json.loads(body)
    except ValueError:
        return {}
    return status if isinstance(status, dict) else {}
