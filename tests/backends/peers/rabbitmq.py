"""Contract peer: a real RabbitMQ node, with a user that has read permissions only."""

from base64 import b64encode
from collections.abc import Mapping

import pytest

from tests.backends.contract import HttpPeer, Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.rabbitmq_server import RabbitMqServer


class Peer(HttpPeer):
    kind = "rabbitmq"
    verified_against = "RabbitMQ 3.10 (Debian 12)"
    marks = (pytest.mark.broker,)

    def start(self) -> None:
        self.server = RabbitMqServer(self.folder / "server")
        self.server.start()
        self._passwords = ("first-password", "second-password")
        self.password = self.folder / "password"
        self.secrets = (*self._passwords, *(self._encoded(each) for each in self._passwords))
        self._good = self._passwords[0]
        self.server.add_user("reader", self._good, "/")
        self.renew_credentials()
        self.proxy.upstream = (LOOPBACK, self.server.management_port)

    def stop(self) -> None:
        self.server.stop()

    def set_values(self, numbers: Mapping[str, int]) -> None:
        self.server.set_values(numbers)

    def settings(self) -> Json:
        return {"url": self.proxy.url, "basicAuth": {"username": "reader", "passwordFile": str(self.password)}}

    def parameters_for(self, name: str) -> Json:
        return {"queue": name, "vhost": "/"}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"vhost": "/", "queue": name}

    def parameters_for_all(self) -> Json:
        return {"queues": ".*"}

    def parameters_without_result(self) -> Json:
        return {"queues": "missing-.*"}

    @property
    def current_secret(self) -> str:
        return f"{self._good} or {self._encoded(self._good)}"

    def expire_credentials(self) -> None:
        self._good = next(each for each in self._passwords if each != self._good)
        self.server.add_user("reader", self._good)

    def renew_credentials(self) -> None:
        self.password.write_text(f"{self._good}\n")

    def remove_credentials(self) -> None:
        self.password.unlink()

    @staticmethod
    def _encoded(password: str) -> str:
        """Return the credentials as sent in the Authorization header."""
        return b64encode(f"reader:{password}".encode()).decode()
