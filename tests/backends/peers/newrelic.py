"""A server of our own that answers as NerdGraph is documented."""

from collections.abc import Mapping

from tests.backends.contract import HttpPeer, Json
from tests.backends.newrelic_server import NewRelicServer

ACCOUNT = 1234567


class Peer(HttpPeer):
    kind = "newrelic"
    verified_against = "a server of our own, by NerdGraph's documentation"

    def start(self) -> None:
        self.server = NewRelicServer(ACCOUNT)
        self.server.start()
        self.secrets = ("NRAK-FIRSTKEYOFOURS", "NRAK-SECONDKEYOFOURS")
        self.server.key = self.secrets[0]
        self.key = self.folder / "key"
        self.renew()
        self.hop.upstream = ("127.0.0.1", self.server.port)

    def stop(self) -> None:
        self.server.stop()

    def hold(self, numbers: Mapping[str, int]) -> None:
        self.server.numbers = dict(numbers)

    def recover(self) -> None:
        super().recover()
        self.server.says = self.server.found = None
        self.server.accounts, self.server.fails, self.server.coerces = {ACCOUNT}, {}, False
        self.server.calls = 0
        self.server.asked.clear()

    def settings(self) -> Json:
        return {"url": self.hop.url, "account": ACCOUNT, "apiKeyFile": str(self.key), "pace": "0s"}

    def one(self, name: str) -> Json:
        where = f"WHERE queue = '{name}' FACET queue LIMIT MAX"
        return {"query": f"SELECT latest(depth) FROM Queue {where} SINCE 2 minutes ago"}  # noqa: S608 - our own

    def labels(self, name: str) -> Mapping[str, str]:
        return {"queue": name}

    def several(self) -> Json:
        return {"query": "SELECT latest(depth) FROM Queue FACET queue LIMIT MAX SINCE 2 minutes ago"}

    def nothing(self) -> Json:
        return {"query": "SELECT latest(depth) FROM Nothing FACET queue LIMIT MAX"}

    @property
    def shown(self) -> str:
        return self.server.key

    def expire(self) -> None:
        self.server.key = next(each for each in self.secrets if each != self.server.key)

    def renew(self) -> None:
        self.key.write_text(f"{self.server.key}\n")

    def lose_secret(self) -> None:
        self.key.unlink()
