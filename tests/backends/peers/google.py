"""A fake of Cloud Monitoring that issues tokens for a service account key and requires them."""

from collections.abc import Mapping

import adapter.backends.google.backend  # noqa: F401 - a slow import, which the service does in a thread
from autoscaler.types.observation import FailureClass
from tests.backends.contract import HttpPeer, Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.google_server import PROJECT, TYPE, GoogleServer, ServiceAccount


class Peer(HttpPeer):
    kind = "google"
    verified_against = "a fake server, written by Google's REST documentation and API definition"
    unknown_failure = FailureClass.BAD_QUERY  # Google reports unknown metrics

    def start(self) -> None:
        self.server = GoogleServer()
        self._accounts = (self.server.account, ServiceAccount("second"))
        self.file = self.folder / "key.json"
        keys = [line for account in self._accounts for line in account.pem.splitlines() if not line.startswith("-")]
        self.secrets = ("google-token-", *keys)
        self.renew_credentials()
        self.proxy.upstream = (LOOPBACK, self.server.port)

    def stop(self) -> None:
        self.server.stop()

    def set_values(self, numbers: Mapping[str, int]) -> None:
        self.server.values = dict(numbers)

    def settings(self) -> Json:
        file = str(self.file)
        return {"url": self.proxy.url, "project": PROJECT, "credentialsFile": file, "maxRequestsPerSecond": 1000}

    def parameters_for(self, name: str) -> Json:
        return {"filter": f'metric.type="{TYPE}" AND resource.labels.subscription_id="{name}"'}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"project_id": PROJECT, "subscription_id": name}

    def parameters_for_all(self) -> Json:
        return {"filter": f'metric.type="{TYPE}"'}

    def parameters_without_result(self) -> Json:
        return self.parameters_for("absent")

    def parameters_for_unknown(self) -> Json:
        return {"filter": 'metric.type="custom.googleapis.com/absent"'}

    @property
    def current_secret(self) -> str:
        return self.server.token  # the key itself is never sent

    def expire_credentials(self) -> None:
        self.server.account = next(account for account in self._accounts if account is not self.server.account)
        self.server.revoke()

    def renew_credentials(self) -> None:
        self.file.write_text(self.server.key_file)

    def remove_credentials(self) -> None:
        self.file.unlink()
