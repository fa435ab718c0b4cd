"""A server of ours in Google's place, which gives tokens for a service account's key and wants to see them."""

from collections.abc import Mapping

import adapter.backends.google.backend  # noqa: F401 - the library is large; the service imports it in a thread
from autoscaler.types.observation import FailureClass
from tests.backends.contract import HttpPeer, Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.google_server import PROJECT, TYPE, GoogleServer, ServiceAccount


class Peer(HttpPeer):
    kind = "google"
    verified_against = "a server of our own that answers as Google's REST documentation says"
    unknown_is = FailureClass.BAD_QUERY  # Google says that there is no such metric

    def start(self) -> None:
        self.server = GoogleServer()
        self._accounts = (self.server.account, ServiceAccount("second"))
        self.file = self.folder / "key.json"
        keys = [line for account in self._accounts for line in account.pem.splitlines() if not line.startswith("-")]
        self.secrets = ("a-token-of-google-", *keys)
        self.renew()
        self.hop.upstream = (LOOPBACK, self.server.port)

    def stop(self) -> None:
        self.server.stop()

    def hold(self, numbers: Mapping[str, int]) -> None:
        self.server.numbers = dict(numbers)

    def settings(self) -> Json:
        file = str(self.file)
        return {"url": self.hop.url, "project": PROJECT, "credentialsFile": file, "callsPerSecond": 1000}

    def one(self, name: str) -> Json:
        return {"filter": f'metric.type="{TYPE}" AND resource.labels.subscription_id="{name}"'}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"project_id": PROJECT, "subscription_id": name}

    def several(self) -> Json:
        return {"filter": f'metric.type="{TYPE}"'}

    def nothing(self) -> Json:
        return self.one("nobody")

    def unknown(self) -> Json:
        return {"filter": 'metric.type="custom.googleapis.com/nobody-has-heard-of-it"'}

    @property
    def shown(self) -> str:
        return self.server.token  # a key itself is never shown, only what it signs

    def expire(self) -> None:
        self.server.account = next(each for each in self._accounts if each is not self.server.account)
        self.server.revoke()

    def renew(self) -> None:
        self.file.write_text(self.server.key_file)

    def lose_secret(self) -> None:
        self.file.unlink()
