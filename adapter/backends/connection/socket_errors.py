"""Why a connection could not be made or broke, by what the operating system said below a library's own words."""

import socket
import ssl
from collections.abc import Iterator
from typing import Final

from adapter.errors import BackendError, BackendTimeout, BackendUnreachable

BY_CAUSE: Final[tuple[tuple[type[BaseException], type[BackendError], str], ...]] = (
    (ssl.SSLError, BackendUnreachable, "its certificate or ours was not accepted"),
    (ssl.CertificateError, BackendUnreachable, "its certificate or ours was not accepted"),
    (ConnectionRefusedError, BackendUnreachable, "connection refused"),
    (socket.gaierror, BackendUnreachable, "its name does not resolve"),
    (TimeoutError, BackendTimeout, "no answer in time"),
)
"""What is the matter, by what is found below what a library raised; its own words may follow."""


def of_connection(error: BaseException) -> BackendError:
    """Say why there is no connection."""
    for cause in causes(error):
        for kind, made, words in BY_CAUSE:
            if isinstance(cause, kind):
                return made(words, detail=str(getattr(cause, "reason", None) or type(cause).__name__))
    return BackendUnreachable("the connection broke", detail=type(error).__name__)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Walk down to what the operating system said; libraries wrap it, some more than once."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            inner = (each.__cause__, each.__context__, getattr(each, "os_error", None), *each.args)
            waiting += [cause for cause in inner if isinstance(cause, BaseException)]
