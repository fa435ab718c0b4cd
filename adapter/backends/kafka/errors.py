"""Translation of Kafka error codes and of aiokafka's exceptions."""

import asyncio
from typing import Final

from aiokafka import errors

from adapter.backends.connection import socket_errors
from adapter.errors import BackendError, BackendRejected, BackendUnauthorized, BadQuery

UNEXPECTED: Final = "unexpected response format"
_MAX_DETAIL: Final = 300
_NO_COORDINATOR: Final = "the coordinator of the group is not available"
_LOGIN_FAILED: Final = "authentication failed: check sasl.username and sasl.passwordFile"
_BY_CODE: Final[dict[int, tuple[type[BackendError], str]]] = {
    14: (BackendRejected, _NO_COORDINATOR),
    15: (BackendRejected, _NO_COORDINATOR),
    16: (BackendRejected, _NO_COORDINATOR),
    17: (BadQuery, "invalid topic name"),
    24: (BadQuery, "invalid consumer group name"),
    29: (BackendUnauthorized, "permission denied: the user needs DESCRIBE on the topic"),
    30: (BackendUnauthorized, "permission denied: the user needs DESCRIBE on the group"),
    31: (BackendUnauthorized, "permission denied: the user needs DESCRIBE on the cluster"),
    33: (BackendUnauthorized, "the broker does not support this SASL mechanism: check sasl.mechanism"),
    34: (BackendUnauthorized, _LOGIN_FAILED),
    58: (BackendUnauthorized, _LOGIN_FAILED),
}
_CONNECTION_ERRORS: Final = (OSError, EOFError, asyncio.IncompleteReadError, TimeoutError)


def from_code(code: int) -> BackendError:
    error_type, message = _BY_CODE.get(code, (BackendRejected, "the broker returned an error"))
    return error_type(message, detail=f"{code} {errors.for_code(code).__name__}")


def from_exception(error: BaseException, host: str = "") -> BackendError:
    if isinstance(error, BackendError):
        return error
    if (code := getattr(error, "errno", None)) in _BY_CODE and isinstance(error, errors.KafkaError):
        error_type, message = _BY_CODE[code]
        return error_type(message, detail=str(error)[:_MAX_DETAIL])
    causes = [each for each in socket_errors.causes(error) if not isinstance(each, errors.KafkaError)]
    is_connection_error = isinstance(error, errors.KafkaConnectionError) or bool(causes)
    if is_connection_error and all(isinstance(each, _CONNECTION_ERRORS) for each in causes):
        return socket_errors.from_exception(error, host=host)
    return BackendRejected(UNEXPECTED, detail=type(error).__name__)
