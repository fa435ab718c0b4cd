"""A fake of Azure Monitor that issues tokens for a client secret and requires them."""

from collections.abc import Mapping

import adapter.backends.azure.backend  # noqa: F401 - a slow import, which the service does in a thread
from autoscaler.types.observation import FailureClass
from tests.backends.azure_server import CLIENT, METRIC, TENANT, AzureServer, resource
from tests.backends.contract import HttpPeer, Json
from tests.backends.faulty_proxy import LOOPBACK


class Peer(HttpPeer):
    kind = "azure"
    verified_against = "a fake server, written by Azure's REST documentation"
    unknown_failure = FailureClass.BAD_QUERY  # Azure reports it for each metric

    def start(self) -> None:
        self.server = AzureServer(self.folder)
        self.secret = self.folder / "secret"
        self._secrets = ("first-client-secret", "second-client-secret")
        self.secrets = (*self._secrets, "azure-token-")
        self.renew_credentials()
        self.proxy.upstream = (LOOPBACK, self.server.port)

    def stop(self) -> None:
        self.server.stop()

    def set_values(self, numbers: Mapping[str, int]) -> None:
        self.server.values = dict(numbers)

    def settings(self) -> Json:
        login = {"tenantId": TENANT, "clientId": CLIENT, "clientSecretFile": str(self.secret)}
        tls = {"caFile": str(self.server.ca)}
        connection = {"url": self.proxy.url, "authority": self.server.authority, "tls": tls}
        return {**connection, "login": login, "maxRequestsPerSecond": 1000}

    def parameters_for(self, name: str) -> Json:
        return {"resource": resource(name), "metric": METRIC, "aggregation": "maximum"}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"resource_name": name, "resource_group": "shop"}

    def parameters_for_all(self) -> Json:
        return {"resource": resource("all"), "metric": METRIC, "dimensions": {"EntityName": "*"}}

    def labels_among_all(self, name: str) -> Mapping[str, str]:
        return {"resource_name": "all", "resource_group": "shop", "entityname": name}

    def parameters_without_result(self) -> Json:
        return {"resource": resource("all"), "metric": METRIC, "dimensions": {"EntityName": "absent"}}

    @property
    def current_secret(self) -> str:
        return f"{self.server.secret} or {self.server.token}"

    def expire_credentials(self) -> None:
        self.server.secret = next(secret for secret in self._secrets if secret != self.server.secret)
        self.server.revoke()

    def renew_credentials(self) -> None:
        self.secret.write_text(f"{self.server.secret}\n")

    def remove_credentials(self) -> None:
        self.secret.unlink()
