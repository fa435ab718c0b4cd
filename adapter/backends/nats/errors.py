"""What NATS or its library says went wrong, as one of our errors: the one door for all of them."""

from typing import Final

from nats import errors

from adapter.backends.connection import socket_errors
from adapter.errors import BackendBusy, BackendError, BackendRejected, BackendUnauthorized

_LONGEST: Final = 300
_BY_WORDS: Final[tuple[tuple[str, type[BackendError], str], ...]] = (
    ("permissions violation", BackendUnauthorized, "the user may not ask that"),
    ("authorization", BackendUnauthorized, "it does not believe our credentials"),
    ("authentication", BackendUnauthorized, "it does not believe our credentials"),
    ("credentials", BackendUnauthorized, "it does not believe our credentials"),
    ("connections exceeded", BackendBusy, "it has as many clients as it may have"),
)
"""NATS tells kinds of errors apart by their words alone."""

_BROKEN: Final = (OSError, errors.StaleConnectionError, errors.ConnectionClosedError, errors.TimeoutError)


def of_exception(error: BaseException | None) -> BackendError:
    """Say what an exception of the library means."""
    if isinstance(error, BackendError):
        return error
    said = str(error)[:_LONGEST]
    for words, made, told in _BY_WORDS:
        if isinstance(error, errors.Error) and words in said.lower():
            return made(told, detail=said)
    if isinstance(error, errors.NoRespondersError):
        return BackendRejected("nobody answers for JetStream: it is not enabled there, or the domain is another")
    if error is None or isinstance(error, _BROKEN):
        return socket_errors.of_connection(error or ConnectionError())
    return BackendRejected("it answers, but not as NATS does", detail=type(error).__name__)
