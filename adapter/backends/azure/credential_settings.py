"""Who we say we are in Azure."""

from collections.abc import Iterator
from typing import Literal

from autoscaler.types.record import Record


class AzureLogin(Record, frozen=True):
    """How a token is had."""

    by: Literal["auto", "workloadIdentity", "managedIdentity", "environment", "clientSecret"] = "auto"
    """``workloadIdentity``: by the service account, as AKS arranges it. ``managedIdentity``: by the machine.
    ``environment``: by ``AZURE_CLIENT_SECRET`` or ``AZURE_CLIENT_CERTIFICATE_PATH`` and what belongs to them.
    ``clientSecret``: by a secret in a file. ``auto``: the first of these that files and variables are there for, in the
    order ``clientSecret``, ``environment``, ``workloadIdentity``; without any, ``managedIdentity``."""

    tenant_id: str = ""
    """The directory. Left out: ``AZURE_TENANT_ID``."""

    client_id: str = ""
    """The application, or the identity if a machine has several. Left out: ``AZURE_CLIENT_ID``."""

    client_secret_file: str = ""
    """Read again for every token, so that the secret can be changed."""

    token_file: str = ""
    """The service account's token, read again for every token of Azure's. Left out: ``AZURE_FEDERATED_TOKEN_FILE``."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        if self.by == "clientSecret" and not self.client_secret_file:
            yield f"{at}.clientSecretFile: is needed to log in by clientSecret"
        if self.client_secret_file and self.by not in {"auto", "clientSecret"}:
            yield f"{at}.clientSecretFile: is for clientSecret, and by is {self.by}"
        if self.token_file and self.by not in {"auto", "workloadIdentity"}:
            yield f"{at}.tokenFile: is for workloadIdentity, and by is {self.by}"
        if self.token_file and self.client_secret_file:
            yield f"{at}.tokenFile: excludes clientSecretFile"
        if self.client_secret_file and not (self.tenant_id and self.client_id):
            yield f"{at}.clientSecretFile: needs tenantId and clientId"
        if not set(self.tenant_id) <= _IN_A_TENANT:
            yield f"{at}.tenantId: must be a GUID or a domain"


_IN_A_TENANT = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-")
