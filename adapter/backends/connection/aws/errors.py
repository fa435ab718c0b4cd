"""What went wrong with AWS, as one of our errors: the one door for whatever aiobotocore raises."""

import re
from typing import Final

from botocore import exceptions as aws

from adapter.backends.connection import http_errors
from adapter.errors import BackendBusy, BackendError, BackendRejected, BackendUnauthorized, BackendUnreachable, BadQuery

_LONGEST: Final = 300
_CODE: Final = re.compile(r"[A-Za-z][\w.:#-]{2,80}", re.ASCII)
_NOT_AS_AWS: Final = "it answers, but not as AWS does"
TOO_OFTEN: Final = "it is asked too often"
_TOO_OFTEN: Final = re.compile(r"Throttl|TooManyRequests|RequestLimitExceeded|SlowDown|OverLimit|LimitExceeded")
_NOT_ADMITTED: Final = re.compile(
    r"AccessDenied|Unauthorized|NotAuthorized|AuthFailure|ExpiredToken|InvalidToken|ClientToken|AuthenticationToken"
    r"|Signature|UnrecognizedClient|InvalidAccessKey|OptInRequired|RequestExpired|TimeTooSkewed|InvalidIdentity"
)
_NOT_UNDERSTOOD: Final = re.compile(r"Validation|InvalidParameter|MissingParameter|InvalidFormat|InvalidAddress")
_BY_CODE: Final = (
    (_TOO_OFTEN, BackendBusy),
    (_NOT_ADMITTED, BackendUnauthorized),
    (_NOT_UNDERSTOOD, BadQuery),
)


def of(error: Exception) -> BackendError:
    """Say why a call brought no answer."""
    match error:
        case BackendError():
            return error
        case aws.ClientError():
            return _of_answer(error)
        case aws.HTTPClientError() | aws.ConnectionError():
            cause = error.kwargs.get("error")
            if isinstance(cause, BackendError):
                return cause
            return http_errors.of_exception(cause if isinstance(cause, Exception) else error)
        case aws.NoRegionError():
            return BackendUnreachable("no region is set: write region, or set AWS_REGION")
        case _:
            return BackendRejected(_NOT_AS_AWS, detail=_told(error))


def of_opening(error: Exception) -> BackendError:
    """Say why there is not even a client: nothing was asked yet."""
    if isinstance(error, aws.NoRegionError | BackendError):
        return of(error)
    words = f"what the platform says of AWS cannot be used: {type(error).__name__}"
    return BackendUnreachable(words, detail=_told(error))


def of_credentials(error: Exception) -> BackendError:
    """Say why we cannot say who we are."""
    if isinstance(error, aws.HTTPClientError | aws.ConnectionError | aws.NoRegionError):
        found = of(error)
        return type(found)(f"credentials cannot be had: {found.message}", detail=found.detail)
    if isinstance(error, aws.ClientError):
        return BackendUnauthorized(f"credentials are refused: {code_of(error) or 'no reason'}", detail=_told(error))
    return BackendUnauthorized(f"credentials cannot be had: {type(error).__name__}", detail=_told(error))


def is_disbelief(error: BackendError) -> bool:
    """Say whether AWS does not believe who we say we are; that we may not do something is another matter."""
    return isinstance(error, BackendUnauthorized) and "AccessDenied" not in error.message


def code_of(error: aws.ClientError) -> str:
    """Give AWS's own word for what is wrong; empty if it is none, as of a proxy's answer."""
    found = str(error.response.get("Error", {}).get("Code", ""))
    return found if _CODE.fullmatch(found) else ""


def _of_answer(error: aws.ClientError) -> BackendError:
    code = code_of(error)
    message = str(error.response.get("Error", {}).get("Message", ""))[:_LONGEST]
    for pattern, kind in _BY_CODE:
        if code and pattern.search(code):
            return kind(TOO_OFTEN if pattern is _TOO_OFTEN else f"AWS says {code}", detail=f"{code}: {message}")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    if not isinstance(status, int) or status < 300:
        return BackendRejected(_NOT_AS_AWS, detail=f"{code}: {message}")
    found = http_errors.of_status(status, message.encode())
    return type(found)(f"AWS says {code}" if code else found.message, detail=found.detail)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST]
