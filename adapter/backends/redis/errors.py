"""What Redis or its library says went wrong, as one of our errors: the one door for all of them."""

from typing import Final

from redis import exceptions

from adapter.backends.connection import socket_errors
from adapter.errors import BackendBusy, BackendError, BackendRejected, BackendUnauthorized, BadQuery

_LONGEST: Final = 300
_NOT_BELIEVED: Final = "it does not believe username and password"
_FULL: Final = "max number of clients reached"
_BY_CODE: Final[dict[str, tuple[type[BackendError], str]]] = {
    "WRONGPASS": (BackendUnauthorized, _NOT_BELIEVED),
    "NOAUTH": (BackendUnauthorized, "it wants a password"),
    "NOPERM": (BackendUnauthorized, "the user may not ask that"),
    "WRONGTYPE": (BadQuery, "the key holds something else than the rule reads"),
    "MOVED": (BackendRejected, "it is a node of a cluster, and not configured as one"),
    "ASK": (BackendRejected, "it is a node of a cluster, and not configured as one"),
    "CLUSTERDOWN": (BackendRejected, "its cluster is down"),
    "LOADING": (BackendRejected, "it still loads its data"),
    "MASTERDOWN": (BackendRejected, "it lost its master"),
}
"""Redis begins an error with a word that tells what kind it is."""


def code(error: exceptions.RedisError) -> str:
    """Give that word; the library takes it off those that it knows."""
    return str(getattr(error, "status_code", None) or str(error).partition(" ")[0])


def of_exception(error: BaseException) -> BackendError:
    """Say what an exception of the library means."""
    if isinstance(error, BackendError):
        return error
    detail = str(error)[:_LONGEST]
    if isinstance(error, exceptions.RedisError) and code(error) in _BY_CODE:
        made, words = _BY_CODE[code(error)]
        return made(words, detail=f"{code(error)} {detail.removeprefix(code(error)).strip()}")
    if isinstance(error, exceptions.AuthenticationError):
        return BackendUnauthorized(_NOT_BELIEVED, detail=detail)
    if isinstance(error, exceptions.ResponseError):
        return BackendRejected("it answers with an error", detail=detail)
    if _FULL in detail:
        return BackendBusy("it has as many clients as it may have", detail=detail)
    if isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError | OSError):
        return socket_errors.of_connection(error)
    return BackendRejected("it answers, but not as Redis does", detail=type(error).__name__)
