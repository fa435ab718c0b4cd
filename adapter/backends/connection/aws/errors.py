"""Translation of the exceptions of botocore and aiobotocore."""

import re
from typing import Final

from botocore import exceptions as aws

from adapter.backends.connection import http_errors
from adapter.backends.connection.http_errors import MAX_DETAIL
from adapter.errors import BackendBusy, BackendError, BackendRejected, BackendUnauthorized, BackendUnreachable, BadQuery

_CODE: Final = re.compile(r"[A-Za-z][\w.:#-]{2,80}", re.ASCII)
_INVALID_RESPONSE: Final = "invalid response from AWS"
RATE_LIMITED: Final = "rate limit exceeded"
_THROTTLING: Final = re.compile(r"Throttl|TooManyRequests|RequestLimitExceeded|SlowDown|OverLimit|LimitExceeded")
_UNAUTHORIZED: Final = re.compile(
    r"AccessDenied|Unauthorized|NotAuthorized|AuthFailure|ExpiredToken|InvalidToken|ClientToken|AuthenticationToken"
    r"|Signature|UnrecognizedClient|InvalidAccessKey|OptInRequired|RequestExpired|TimeTooSkewed|InvalidIdentity"
)
_INVALID_QUERY: Final = re.compile(r"Validation|InvalidParameter|MissingParameter|InvalidFormat|InvalidAddress")
_BY_CODE: Final = (
    (_THROTTLING, BackendBusy),
    (_UNAUTHORIZED, BackendUnauthorized),
    (_INVALID_QUERY, BadQuery),
)


def from_exception(error: Exception) -> BackendError:
    match error:
        case BackendError():
            return error
        case aws.ClientError():
            return _from_response(error)
        case aws.HTTPClientError() | aws.ConnectionError():
            cause = error.kwargs.get("error")
            if isinstance(cause, BackendError):
                return cause
            return http_errors.from_exception(cause if isinstance(cause, Exception) else error)
        case aws.NoRegionError():
            return BackendUnreachable("no AWS region: set region or the variable AWS_REGION")
        case _:
            return BackendRejected(_INVALID_RESPONSE, detail=_detail(error))


def from_client_creation(error: Exception) -> BackendError:
    """Return the error for a client that cannot be created, before any request."""
    if isinstance(error, aws.NoRegionError | BackendError):
        return from_exception(error)
    message = f"the AWS configuration of the environment is invalid: {type(error).__name__}"
    return BackendUnreachable(message, detail=_detail(error))


def from_credentials(error: Exception) -> BackendError:
    """Return the error for credentials that cannot be obtained."""
    if isinstance(error, aws.HTTPClientError | aws.ConnectionError | aws.NoRegionError):
        found = from_exception(error)
        return type(found)(f"no AWS credentials: {found.message}", detail=found.detail)
    if isinstance(error, aws.ClientError):
        return BackendUnauthorized(
            f"AWS rejected the credentials: {error_code(error)}".rstrip(": "), detail=_detail(error)
        )
    return BackendUnauthorized(f"no AWS credentials: {type(error).__name__}", detail=_detail(error))


def is_authentication_failure(error: BackendError) -> bool:
    """Return whether AWS rejected the identity itself, not only its permission for an action."""
    return isinstance(error, BackendUnauthorized) and "AccessDenied" not in error.message


def error_code(error: aws.ClientError) -> str:
    """Return AWS' error code; empty if there is none, as in a response of a proxy."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    return code if _CODE.fullmatch(code) else ""


def _from_response(error: aws.ClientError) -> BackendError:
    code = error_code(error)
    text = str(error.response.get("Error", {}).get("Message", ""))[:MAX_DETAIL]
    for pattern, error_type in _BY_CODE:
        if code and pattern.search(code):
            message = RATE_LIMITED if pattern is _THROTTLING else f"AWS error {code}"
            return error_type(message, detail=f"{code}: {text}")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    if not isinstance(status, int) or status < 300:
        return BackendRejected(_INVALID_RESPONSE, detail=f"{code}: {text}")
    found = http_errors.from_status(status, text.encode())
    return type(found)(f"AWS error {code}" if code else found.message, detail=found.detail)


def _detail(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:MAX_DETAIL]
