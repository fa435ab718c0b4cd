"""A server of ours in Azure's place, which gives tokens for a secret and wants to see them."""

from collections.abc import Mapping

import adapter.backends.azure.backend  # noqa: F401 - the library is large; the service imports it in a thread
from autoscaler.types.observation import FailureClass
from tests.backends.azure_server import CLIENT, METRIC, TENANT, AzureServer, resource
from tests.backends.contract import HttpPeer, Json
from tests.backends.faulty_proxy import LOOPBACK


class Peer(HttpPeer):
    kind = "azure"
    verified_against = "a server of our own that answers as Azure's REST documentation says"
    unknown_is = FailureClass.BAD_QUERY  # Azure says so of each metric

    def start(self) -> None:
        self.server = AzureServer(self.folder)
        self.secret = self.folder / "secret"
        self._secrets = ("first-secret-of-ours", "second-secret-of-ours")
        self.secrets = (*self._secrets, "a-token-of-azure-")
        self.renew()
        self.hop.upstream = (LOOPBACK, self.server.port)

    def stop(self) -> None:
        self.server.stop()

    def hold(self, numbers: Mapping[str, int]) -> None:
        self.server.numbers = dict(numbers)

    def settings(self) -> Json:
        login = {"tenantId": TENANT, "clientId": CLIENT, "clientSecretFile": str(self.secret)}
        where = {"endpoint": self.hop.url, "authority": self.server.authority, "caFile": str(self.server.ca)}
        return {**where, "login": login, "callsPerSecond": 1000}

    def one(self, name: str) -> Json:
        return {"resource": resource(name), "metric": METRIC, "aggregation": "maximum"}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"resource_name": name, "resource_group": "shop"}

    def several(self) -> Json:
        return {"resource": resource("all"), "metric": METRIC, "dimensions": {"EntityName": "*"}}

    def labels_among_several(self, name: str) -> Mapping[str, str]:
        return {"resource_name": "all", "resource_group": "shop", "entityname": name}

    def nothing(self) -> Json:
        return {"resource": resource("all"), "metric": METRIC, "dimensions": {"EntityName": "nobody"}}

    @property
    def shown(self) -> str:
        return f"{self.server.secret} or {self.server.token}"

    def expire(self) -> None:
        self.server.secret = next(each for each in self._secrets if each != self.server.secret)
        self.server.revoke()

    def renew(self) -> None:
        self.secret.write_text(f"{self.server.secret}\n")

    def lose_secret(self) -> None:
        self.secret.unlink()
