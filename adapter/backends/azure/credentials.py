"""Access tokens of Microsoft Entra ID, as an ``AsyncTokenCredential`` of azure.core."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, Final, Self, TypeAlias

from azure.core.credentials import AccessToken, AccessTokenInfo, TokenRequestOptions
from azure.identity.aio import (
    ClientAssertionCredential,
    ClientSecretCredential,
    EnvironmentCredential,
    ManagedIdentityCredential,
)

from adapter.backends.azure.credential_settings import AzureLoginSettings
from adapter.backends.connection.secret_file import Redactor, SecretFile
from adapter.errors import BackendUnauthorized

LibraryCredential: TypeAlias = (
    ClientAssertionCredential | ClientSecretCredential | EnvironmentCredential | ManagedIdentityCredential
)
_SECRET_VARIABLES: Final = ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH")
_TOKEN_FILE_VARIABLE: Final = "AZURE_FEDERATED_TOKEN_FILE"  # noqa: S105 - the name of a variable


class AzureCredential:
    """Obtains tokens by the configured method; a rotated secret or a rejected token leads to a new login."""

    def __init__(
        self, settings: AzureLoginSettings, authority: str, pipeline_options: Callable[[], dict[str, Any]]
    ) -> None:
        self._settings = settings
        self._authority = authority
        self._pipeline_options = pipeline_options
        """Session and retry settings for the clients of azure-identity; called when an event loop is running."""

        self._method = _method(settings)
        self._file = _secret_file(settings, self._method)
        self._tokens = Redactor()
        self._credential: LibraryCredential | None = None
        self._secret = ""
        """The content of the file with which the credential was created."""

    @property
    def secrets(self) -> tuple[Redactor, ...]:
        """Redactors of the tokens and the secret of the file."""
        return (self._tokens, self._file) if self._file else (self._tokens,)

    async def get_token_info(self, *scopes: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        """Return a token, from the cache of azure-identity while it is valid."""
        secret = await self._file.read() if self._file else ""
        if self._credential is None or secret != self._secret:
            self._credential = await asyncio.to_thread(self._create, secret)  # may read a certificate
            self._secret = secret
        token = await self._credential.get_token_info(*scopes, options=options)
        self._tokens.add(token.token)
        return token

    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:  # noqa: ANN401 - azure.core's signature
        """Return a token in the type of the older protocol of azure.core."""
        token = await self.get_token_info(*scopes)
        return AccessToken(token.token, token.expires_on)

    def reset(self) -> None:
        """Log in again for the next request, after the API rejected the token."""
        self._credential = None

    async def close(self) -> None:
        """Reset; the session belongs to the client."""
        self.reset()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _create(self, secret: str) -> LibraryCredential:
        tenant = self._settings.tenant_id or os.environ.get("AZURE_TENANT_ID", "")
        client = self._settings.client_id or os.environ.get("AZURE_CLIENT_ID", "")
        options = self._pipeline_options()
        if self._method == "managedIdentity":
            options.pop("proxies", None)  # the identity endpoint is on the node
            return ManagedIdentityCredential(client_id=client or None, **options)
        if self._authority:
            options["authority"] = self._authority
        if self._method == "environment":
            return EnvironmentCredential(**options)
        if not (tenant and client):
            raise BackendUnauthorized("login needs tenantId and clientId, or AZURE_TENANT_ID and AZURE_CLIENT_ID")
        if self._method == "clientSecret":
            return ClientSecretCredential(tenant, client, secret, **options)
        return ClientAssertionCredential(tenant, client, func=lambda: secret, **options)


def _method(settings: AzureLoginSettings) -> str:
    """Return the login method, resolving ``auto``."""
    if settings.method != "auto":
        return settings.method
    if settings.client_secret_file:
        return "clientSecret"
    if not settings.token_file and any(os.environ.get(name) for name in _SECRET_VARIABLES):
        return "environment"
    has_token = settings.token_file or os.environ.get(_TOKEN_FILE_VARIABLE)
    return "workloadIdentity" if has_token else "managedIdentity"


def _secret_file(settings: AzureLoginSettings, method: str) -> SecretFile | None:
    if method == "clientSecret":
        return SecretFile(settings.client_secret_file, "login.clientSecretFile")
    if method == "workloadIdentity":
        return SecretFile(settings.token_file or os.environ.get(_TOKEN_FILE_VARIABLE, ""), "login.tokenFile")
    return None
