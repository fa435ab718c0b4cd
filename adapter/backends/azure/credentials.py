"""Access tokens of Microsoft Entra ID, obtained and cached by azure-identity."""

import asyncio
import logging
import os
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.core.pipeline.transport import AioHttpTransport
from azure.identity import CredentialUnavailableError
from azure.identity.aio import (
    ClientAssertionCredential,
    ClientSecretCredential,
    EnvironmentCredential,
    ManagedIdentityCredential,
)

from adapter.backends.azure.settings import Azure, AzureLoginSettings
from adapter.backends.connection import http_errors
from adapter.backends.connection.secret_file import Redactor, SecretFile
from adapter.errors import BackendError, BackendUnauthorized

LibraryCredential: TypeAlias = (
    ClientAssertionCredential | ClientSecretCredential | EnvironmentCredential | ManagedIdentityCredential
)
_SECRET_VARIABLES: Final = ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH")
_TOKEN_FILE_VARIABLE: Final = "AZURE_FEDERATED_TOKEN_FILE"  # noqa: S105 - the name of a variable
_NO_TIMEOUT: Final = 3600  # seconds; ProtectedCall has the deadline


class AzureCredential:
    """Obtains tokens by the configured method; a rotated secret or a rejected token leads to a new login."""

    def __init__(self, settings: Azure) -> None:
        self._settings = settings
        self._method = _method(settings.login)
        self._file = _secret_file(settings.login, self._method)
        self._tokens = Redactor()
        self.secrets: tuple[Redactor, ...] = (self._tokens, self._file) if self._file else (self._tokens,)
        self._lock = asyncio.Lock()
        self._credential: LibraryCredential | None = None
        self._secret = ""
        """The content of the file with which the credential was created."""

        self._is_rejected = False
        # These libraries log every request and every failure; failures are reported as BackendErrors instead.
        for name in ("azure", "msal"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    async def token(self) -> str:
        """Return a valid token."""
        async with self._lock:
            secret = await self._file.read() if self._file else ""
            try:
                if self._credential is None or self._is_rejected or secret != self._secret:
                    await self.aclose()
                    self._credential = await asyncio.to_thread(self._create, secret)  # may read a certificate
                    self._secret, self._is_rejected = secret, False
                token = await self._credential.get_token_info(f"{self._settings.token_audience}/.default")
            except (AzureError, OSError, ValueError) as error:
                raise _login_error(error) from None
            self._tokens.add(token.token)
            return token.token

    def reset(self) -> None:
        """Log in again for the next request, after the API rejected the token."""
        self._is_rejected = True

    async def aclose(self) -> None:
        if self._credential is not None:
            await self._credential.close()

    def _create(self, secret: str) -> LibraryCredential:
        login, options = self._settings.login, self._pipeline_options()
        tenant = login.tenant_id or os.environ.get("AZURE_TENANT_ID", "")
        client = login.client_id or os.environ.get("AZURE_CLIENT_ID", "")
        if self._method == "managedIdentity":
            options.pop("proxies", None)  # the identity endpoint is on the node
            return ManagedIdentityCredential(client_id=client or None, **options)
        if authority := self._settings.login_authority:
            options["authority"] = authority
        if self._method == "environment":
            return EnvironmentCredential(**options)
        if not (tenant and client):
            raise BackendUnauthorized("login needs tenantId and clientId, or AZURE_TENANT_ID and AZURE_CLIENT_ID")
        if self._method == "clientSecret":
            return ClientSecretCredential(tenant, client, secret, **options)
        return ClientAssertionCredential(tenant, client, func=lambda: secret, **options)

    def _pipeline_options(self) -> dict[str, Any]:
        """Return options of azure-identity without retries, redirects and proxies of the environment."""
        tls, proxy = self._settings.tls, self._settings.proxy_url
        transport = AioHttpTransport(
            use_env_settings=False,
            connection_timeout=_NO_TIMEOUT,
            read_timeout=_NO_TIMEOUT,
            connection_verify=False if tls.insecure_skip_verify else tls.ca_file or True,
            connection_cert=(tls.cert_file, tls.key_file or None) if tls.cert_file else None,
        )
        proxies = {"proxies": {"http": proxy, "https": proxy}} if proxy else {}
        return {
            "transport": transport,
            "retry_total": 0,
            "permit_redirects": False,
            "tracing_enabled": False,
            **proxies,
        }


def _method(login: AzureLoginSettings) -> str:
    """Return the login method, resolving ``auto``."""
    if login.method != "auto":
        return login.method
    if login.client_secret_file:
        return "clientSecret"
    if not login.token_file and any(os.environ.get(name) for name in _SECRET_VARIABLES):
        return "environment"
    has_token = login.token_file or os.environ.get(_TOKEN_FILE_VARIABLE)
    return "workloadIdentity" if has_token else "managedIdentity"


def _secret_file(login: AzureLoginSettings, method: str) -> SecretFile | None:
    if method == "clientSecret":
        return SecretFile(login.client_secret_file, "login.clientSecretFile")
    if method == "workloadIdentity":
        return SecretFile(login.token_file or os.environ.get(_TOKEN_FILE_VARIABLE, ""), "login.tokenFile")
    return None


def _login_error(error: Exception) -> BackendError:
    """Return the ``BackendError`` for a login that failed."""
    detail = " ".join(str(error).split())[: http_errors.MAX_DETAIL]
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
