"""A server of our own that answers as Datadog's API reference says."""

from collections.abc import Mapping

from tests.backends.contract import HttpPeer, Json
from tests.backends.datadog_server import DatadogServer


class Peer(HttpPeer):
    kind = "datadog"
    verified_against = "a server of our own, by Datadog's API reference"

    def start(self) -> None:
        self.server = DatadogServer()
        self.server.start()
        self.files = {"DD-API-KEY": self.folder / "api-key", "DD-APPLICATION-KEY": self.folder / "application-key"}
        self.secrets = ("first-api-key-of-ours", "second-api-key-of-ours", "application-key-of-ours")
        self.server.keys = {"DD-API-KEY": self.secrets[0], "DD-APPLICATION-KEY": self.secrets[2]}
        self.renew()
        self.hop.upstream = ("127.0.0.1", self.server.port)

    def stop(self) -> None:
        self.server.stop()

    def hold(self, numbers: Mapping[str, int]) -> None:
        self.server.numbers = dict(numbers)

    def recover(self) -> None:
        super().recover()
        self.server.limit, self.server.points, self.server.says = {}, None, None
        self.server.refuses = self.server.calls = 0
        self.server.asked.clear()

    def settings(self) -> Json:
        return {
            "url": self.hop.url,
            "apiKeyFile": str(self.files["DD-API-KEY"]),
            "applicationKeyFile": str(self.files["DD-APPLICATION-KEY"]),
            "pace": "0s",
        }

    def one(self, name: str) -> Json:
        return {"query": f"avg:queue.depth{{queue:{name}}} by {{queue}}"}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"queue": name}

    def several(self) -> Json:
        return {"query": "avg:queue.depth{*} by {queue}"}

    def nothing(self) -> Json:
        return {"query": "avg:queue.length{*} by {queue}"}

    @property
    def shown(self) -> str:
        return " or ".join(self.server.keys.values())

    def expire(self) -> None:
        before = self.server.keys["DD-API-KEY"]
        self.server.keys["DD-API-KEY"] = next(each for each in self.secrets[:2] if each != before)

    def renew(self) -> None:
        for name, file in self.files.items():
            file.write_text(f"{self.server.keys[name]}\n")

    def lose_secret(self) -> None:
        self.files["DD-APPLICATION-KEY"].unlink()
