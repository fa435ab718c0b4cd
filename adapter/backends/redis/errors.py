"""Translation of Redis error replies and of redis-py's exceptions."""

from typing import Final

from redis import exceptions

from adapter.backends.connection import socket_errors
from adapter.errors import BackendBusy, BackendError, BackendRejected, BackendUnauthorized, BadQuery

UNEXPECTED: Final = "unexpected response format"
_MAX_DETAIL: Final = 300
_LOGIN_FAILED: Final = "authentication failed: check username and passwordFile"
_CLUSTER_NODE: Final = "the server is a cluster node: set cluster to true"
_TOO_MANY_CLIENTS: Final = "max number of clients reached"
_BY_CODE: Final[dict[str, tuple[type[BackendError], str]]] = {
    "WRONGPASS": (BackendUnauthorized, _LOGIN_FAILED),
    "NOAUTH": (BackendUnauthorized, "authentication required: set passwordFile"),
    "NOPERM": (BackendUnauthorized, "permission denied: check the ACL of the user"),
    "WRONGTYPE": (BadQuery, "the type of the key does not match measure"),
    "MOVED": (BackendRejected, _CLUSTER_NODE),
    "ASK": (BackendRejected, _CLUSTER_NODE),
    "CLUSTERDOWN": (BackendRejected, "the cluster is down"),
    "LOADING": (BackendRejected, "the server is still loading its data"),
    "MASTERDOWN": (BackendRejected, "the replica lost its master"),
}
"""Error type and message by the code of an error reply, which is its first word."""


def from_exception(error: BaseException, host: str = "") -> BackendError:
    if isinstance(error, BackendError):
        return error
    detail = str(error)[:_MAX_DETAIL]
    if isinstance(error, exceptions.RedisError) and (code := _code(error)) in _BY_CODE:
        error_type, message = _BY_CODE[code]
        return error_type(message, detail=f"{code} {detail.removeprefix(code).strip()}")
    if isinstance(error, exceptions.AuthenticationError):
        return BackendUnauthorized(_LOGIN_FAILED, detail=detail)
    if isinstance(error, exceptions.ResponseError):
        return BackendRejected("the server returned an error", detail=detail)
    if _TOO_MANY_CLIENTS in detail:
        return BackendBusy("the server has reached its maximum number of clients", detail=detail)
    if isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError | OSError):
        return socket_errors.from_exception(error, host=host)
    return BackendRejected(UNEXPECTED, detail=type(error).__name__)


def _code(error: exceptions.RedisError) -> str:
    """Return the code of an error reply, its first word; redis-py moves known codes to ``status_code``."""
    return str(getattr(error, "status_code", None) or str(error).partition(" ")[0])
