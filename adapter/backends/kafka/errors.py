"""What Kafka or its library says went wrong, as one of our errors: the one door for all of them."""

import asyncio
from typing import Final

from aiokafka import errors

from adapter.backends.connection import socket_errors
from adapter.errors import BackendError, BackendRejected, BackendUnauthorized, BadQuery

_LONGEST: Final = 300
_BY_CODE: Final[dict[int, tuple[type[BackendError], str]]] = {
    14: (BackendRejected, "the group's coordinator is not available"),
    15: (BackendRejected, "the group's coordinator is not available"),
    16: (BackendRejected, "the group's coordinator is not available"),
    17: (BadQuery, "there can be no such topic"),
    24: (BadQuery, "there can be no such group"),
    29: (BackendUnauthorized, "the user may not describe the topic"),
    30: (BackendUnauthorized, "the user may not describe the group"),
    31: (BackendUnauthorized, "the user may not ask that"),
    33: (BackendUnauthorized, "it does not take this mechanism of SASL"),
    34: (BackendUnauthorized, "it does not believe username and password"),
    58: (BackendUnauthorized, "it does not believe username and password"),
}
"""Kafka's errors have numbers."""

_BROKEN: Final = (OSError, EOFError, asyncio.IncompleteReadError, TimeoutError)


def of_code(code: int) -> BackendError:
    """Say what an error in an answer means."""
    made, words = _BY_CODE.get(code, (BackendRejected, "it answers with an error"))
    return made(words, detail=f"{code} {errors.for_code(code).__name__}")


def of_exception(error: BaseException) -> BackendError:
    """Say what an exception of the library means."""
    if isinstance(error, BackendError):
        return error
    if (code := getattr(error, "errno", None)) in _BY_CODE and isinstance(error, errors.KafkaError):
        made, words = _BY_CODE[code]
        return made(words, detail=str(error)[:_LONGEST])
    below = [each for each in socket_errors.causes(error) if not isinstance(each, errors.KafkaError)]
    is_broken = isinstance(error, errors.KafkaConnectionError) or bool(below)
    if is_broken and all(isinstance(each, _BROKEN) for each in below):
        return socket_errors.of_connection(error)
    return BackendRejected("it answers, but not as Kafka does", detail=type(error).__name__)
