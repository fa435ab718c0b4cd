"""A fake of the Datadog API."""

from collections.abc import Mapping

from tests.backends.contract import HttpPeer, Json
from tests.backends.datadog_server import DatadogServer


class Peer(HttpPeer):
    kind = "datadog"
    verified_against = "a fake server, written by Datadog's API reference"

    def start(self) -> None:
        self.server = DatadogServer()
        self.server.start()
        self.files = {"DD-API-KEY": self.folder / "api-key", "DD-APPLICATION-KEY": self.folder / "application-key"}
        self.secrets = ("first-api-key", "second-api-key", "first-application-key")
        self.server.keys = {"DD-API-KEY": self.secrets[0], "DD-APPLICATION-KEY": self.secrets[2]}
        self.renew_credentials()
        self.proxy.upstream = ("127.0.0.1", self.server.port)

    def stop(self) -> None:
        self.server.stop()

    def set_values(self, numbers: Mapping[str, int]) -> None:
        self.server.values = dict(numbers)

    def recover(self) -> None:
        super().recover()
        self.server.rate_limit_headers, self.server.points, self.server.response = {}, None, None
        self.server.status = self.server.request_count = 0
        self.server.requests.clear()

    def settings(self) -> Json:
        return {
            "url": self.proxy.url,
            "apiKeyFile": str(self.files["DD-API-KEY"]),
            "applicationKeyFile": str(self.files["DD-APPLICATION-KEY"]),
            "minRequestInterval": "0s",
        }

    def parameters_for(self, name: str) -> Json:
        return {"query": f"avg:queue.depth{{queue:{name}}} by {{queue}}"}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"queue": name}

    def parameters_for_all(self) -> Json:
        return {"query": "avg:queue.depth{*} by {queue}"}

    def parameters_without_result(self) -> Json:
        return {"query": "avg:queue.length{*} by {queue}"}

    @property
    def current_secret(self) -> str:
        return " or ".join(self.server.keys.values())

    def expire_credentials(self) -> None:
        before = self.server.keys["DD-API-KEY"]
        self.server.keys["DD-API-KEY"] = next(key for key in self.secrets[:2] if key != before)

    def renew_credentials(self) -> None:
        for name, file in self.files.items():
            file.write_text(f"{self.server.keys[name]}\n")

    def remove_credentials(self) -> None:
        self.files["DD-APPLICATION-KEY"].unlink()
