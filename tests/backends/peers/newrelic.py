"""A fake of NerdGraph."""

from collections.abc import Mapping

from tests.backends.contract import HttpPeer, Json
from tests.backends.newrelic_server import NewRelicServer

ACCOUNT = 1234567


class Peer(HttpPeer):
    kind = "newrelic"
    verified_against = "a fake server, written by NerdGraph's documentation"

    def start(self) -> None:
        self.server = NewRelicServer(ACCOUNT)
        self.server.start()
        self.secrets = ("NRAK-FIRSTKEY", "NRAK-SECONDKEY")
        self.server.key = self.secrets[0]
        self.key = self.folder / "key"
        self.renew_credentials()
        self.proxy.upstream = ("127.0.0.1", self.server.port)

    def stop(self) -> None:
        self.server.stop()

    def set_values(self, numbers: Mapping[str, int]) -> None:
        self.server.values = dict(numbers)

    def recover(self) -> None:
        super().recover()
        self.server.response = self.server.nrql_result = None
        self.server.accounts, self.server.errors_by_query, self.server.validates_first = {ACCOUNT}, {}, False
        self.server.request_count = 0
        self.server.requests.clear()

    def settings(self) -> Json:
        return {"url": self.proxy.url, "account": ACCOUNT, "apiKeyFile": str(self.key), "minRequestInterval": "0s"}

    def parameters_for(self, name: str) -> Json:
        where = f"WHERE queue = '{name}' FACET queue LIMIT MAX"
        return {"query": f"SELECT latest(depth) FROM Queue {where} SINCE 2 minutes ago"}  # noqa: S608 - sent to the fake

    def labels(self, name: str) -> Mapping[str, str]:
        return {"queue": name}

    def parameters_for_all(self) -> Json:
        return {"query": "SELECT latest(depth) FROM Queue FACET queue LIMIT MAX SINCE 2 minutes ago"}

    def parameters_without_result(self) -> Json:
        return {"query": "SELECT latest(depth) FROM Nothing FACET queue LIMIT MAX"}

    @property
    def current_secret(self) -> str:
        return self.server.key

    def expire_credentials(self) -> None:
        self.server.key = next(key for key in self.secrets if key != self.server.key)

    def renew_credentials(self) -> None:
        self.key.write_text(f"{self.server.key}\n")

    def remove_credentials(self) -> None:
        self.key.unlink()
