"""Translation of exceptions of the Azure libraries into ``BackendError``s."""

from http import HTTPStatus
from typing import Final

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.identity import CredentialUnavailableError

from adapter.backends.connection import http_errors
from adapter.errors import BackendError, BackendUnauthorized

_MAX_DETAIL: Final = 300


def from_exception(error: Exception) -> BackendError:
    """Return the error for a request or a login that failed."""
    if isinstance(error, BackendError):
        return error
    detail = " ".join(str(error).split())[:_MAX_DETAIL]
    if isinstance(error, CredentialUnavailableError):
        return BackendUnauthorized("no Azure credential available: check login", detail=detail)
    if isinstance(error, HttpResponseError):
        status = error.status_code or 0
        if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return http_errors.from_status(status, detail.encode())
        if isinstance(error, ClientAuthenticationError):
            return BackendUnauthorized("authentication with Microsoft Entra ID failed: check login", detail=detail)
    if isinstance(error, AzureError | OSError):
        return http_errors.from_exception(error)
    # A ValueError of azure-identity, raised before anything was sent.
    return BackendUnauthorized("invalid Azure credentials: check login", detail=detail)
