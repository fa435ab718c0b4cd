"""What went wrong in Azure's library, as one of our errors: the one door."""

from http import HTTPStatus
from typing import Final

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.identity import CredentialUnavailableError

from adapter.backends.connection import http_errors
from adapter.errors import BackendError, BackendUnauthorized

_LONGEST: Final = 300


def of_exception(error: Exception) -> BackendError:
    """Say why there was no answer, or no token."""
    if isinstance(error, BackendError):
        return error
    detail = " ".join(str(error).split())[:_LONGEST]
    if isinstance(error, CredentialUnavailableError):
        return BackendUnauthorized("there is no identity to log in with", detail=detail)
    if isinstance(error, HttpResponseError):
        status = error.status_code or 0
        if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return http_errors.of_status(status, detail.encode())
        if isinstance(error, ClientAuthenticationError):
            return BackendUnauthorized("Microsoft Entra ID gives us no token", detail=detail)
    if isinstance(error, AzureError | OSError):
        return http_errors.of_exception(error)
    return BackendUnauthorized("its login cannot be used", detail=detail)  # a ValueError, before anything was sent
