"""Settings for the Microsoft Entra ID credentials of the Azure backend."""

from collections.abc import Iterator
from typing import Final, Literal

from adapter.decoding.problem import Problem
from autoscaler.types.record import Record

_TENANT_CHARACTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-")


class AzureLoginSettings(Record, frozen=True):
    """How an access token is obtained from Microsoft Entra ID."""

    method: Literal["auto", "workloadIdentity", "managedIdentity", "environment", "clientSecret"] = "auto"
    """``workloadIdentity``: the token of the service account, which AKS mounts. ``managedIdentity``: the identity of
    the node. ``environment``: ``AZURE_CLIENT_SECRET`` or ``AZURE_CLIENT_CERTIFICATE_PATH`` and the variables that
    belong to them. ``clientSecret``: a client secret in a file. ``auto``: the first of ``clientSecret``,
    ``environment`` and ``workloadIdentity`` for which files or variables are present; otherwise
    ``managedIdentity``."""

    tenant_id: str = ""
    """The tenant (directory). Default: ``AZURE_TENANT_ID``."""

    client_id: str = ""
    """The application, or the identity if the node has several. Default: ``AZURE_CLIENT_ID``."""

    client_secret_file: str = ""
    """File with the client secret. Read again for every token, so that the secret can be rotated."""

    token_file: str = ""
    """File with the token of the service account, read again for every token. Default:
    ``AZURE_FEDERATED_TOKEN_FILE``."""

    def problems(self, path: str) -> Iterator[Problem]:
        """Return the problems that decoding does not find, each with its path."""
        if self.method == "clientSecret" and not self.client_secret_file:
            yield Problem(f"{path}.clientSecretFile", "required with method clientSecret")
        if self.client_secret_file and self.method not in {"auto", "clientSecret"}:
            yield Problem(f"{path}.clientSecretFile", f"not valid with method {self.method}")
        if self.token_file and self.method not in {"auto", "workloadIdentity"}:
            yield Problem(f"{path}.tokenFile", f"not valid with method {self.method}")
        if self.token_file and self.client_secret_file:
            yield Problem(f"{path}.tokenFile", "cannot be combined with clientSecretFile")
        if self.client_secret_file and not (self.tenant_id and self.client_id):
            yield Problem(f"{path}.clientSecretFile", "requires tenantId and clientId")
        if not set(self.tenant_id) <= _TENANT_CHARACTERS:
            yield Problem(f"{path}.tenantId", "must be a GUID or a domain name")
