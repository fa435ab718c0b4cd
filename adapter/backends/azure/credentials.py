"""Tokens of Microsoft Entra ID, by whatever way the settings or the platform name; fits azure.core's own protocol."""

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

from adapter.backends.azure.credential_settings import AzureLogin
from adapter.backends.connection.secret_file import Hidden, SecretFile
from adapter.errors import BackendUnauthorized

Credential: TypeAlias = (
    ClientAssertionCredential | ClientSecretCredential | EnvironmentCredential | ManagedIdentityCredential
)
_SECRETS_OF_THE_ENVIRONMENT: Final = ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH")
_TOKEN_FILE: Final = "AZURE_FEDERATED_TOKEN_FILE"  # noqa: S105 - the name of a variable


class Login:
    """Who we are. A secret that changed, or a token that was not believed, makes it log in anew."""

    def __init__(self, settings: AzureLogin, authority: str, options: Callable[[], dict[str, Any]]) -> None:
        self._settings = settings
        self._authority = authority
        self._options = options
        """What the library's clients are made with, once there is a loop: our session, and no retries."""

        self._by = _chosen(settings)
        self._file = _file(settings, self._by)
        self.tokens = Hidden()
        """What must not be told, either."""

        self._credential: Credential | None = None
        self._made_with = ""

    @property
    def secrets(self) -> tuple[Hidden, ...]:
        """All that must not be told."""
        return (self.tokens, self._file) if self._file else (self.tokens,)

    async def get_token_info(self, *scopes: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        """Return a token, from memory while it is good."""
        secret = await self._file.read() if self._file else ""
        if self._credential is None or secret != self._made_with:
            self._credential = await asyncio.to_thread(self._new, secret)  # some read a certificate
            self._made_with = secret
        token = await self._credential.get_token_info(*scopes, options=options)
        self.tokens.hide(token.token)
        return token

    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:  # noqa: ANN401 - azure.core's own
        """Do the same, as older parts of the library ask for it."""
        token = await self.get_token_info(*scopes)
        return AccessToken(token.token, token.expires_on)

    def forget(self) -> None:
        """Log in anew next time: what we showed was not believed."""
        self._credential = None

    async def close(self) -> None:
        """Forget it all; the session is not ours."""
        self.forget()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _new(self, secret: str) -> Credential:
        """Make what gets tokens; in a thread."""
        tenant = self._settings.tenant_id or os.environ.get("AZURE_TENANT_ID", "")
        client = self._settings.client_id or os.environ.get("AZURE_CLIENT_ID", "")
        options = {**self._options(), **({"authority": self._authority} if self._authority else {})}
        if self._by == "managedIdentity":
            return ManagedIdentityCredential(client_id=client or None, **_without_proxy(options))
        if self._by == "environment":
            return EnvironmentCredential(**options)
        if not (tenant and client):
            raise BackendUnauthorized("login needs tenantId and clientId, or the variables in their place")
        if self._by == "clientSecret":
            return ClientSecretCredential(tenant, client, secret, **options)
        return ClientAssertionCredential(tenant, client, func=lambda: secret, **options)


def _chosen(settings: AzureLogin) -> str:
    if settings.by != "auto":
        return settings.by
    if settings.client_secret_file:
        return "clientSecret"
    if not settings.token_file and any(os.environ.get(name) for name in _SECRETS_OF_THE_ENVIRONMENT):
        return "environment"
    return "workloadIdentity" if settings.token_file or os.environ.get(_TOKEN_FILE) else "managedIdentity"


def _file(settings: AzureLogin, by: str) -> SecretFile | None:
    if by == "clientSecret":
        return SecretFile(settings.client_secret_file, "login.clientSecretFile")
    if by == "workloadIdentity":
        return SecretFile(settings.token_file or os.environ.get(_TOKEN_FILE, ""), "login.tokenFile")
    return None


def _without_proxy(options: dict[str, Any]) -> dict[str, Any]:
    """Leave the proxy out: the machine's own identity is on the machine."""
    return {key: value for key, value in options.items() if key not in {"proxies", "authority"}}
