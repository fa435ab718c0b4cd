"""A real RabbitMQ, asked by a user who may only look."""

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
        self._passwords = ("first-password-of-ours", "second-password-of-ours")
        self.password = self.folder / "password"
        self.secrets = (*self._passwords, *(self._sent(each) for each in self._passwords))
        self._good = self._passwords[0]
        self.server.add_user("reader", self._good, "/")
        self.renew()
        self.hop.upstream = (LOOPBACK, self.server.management_port)

    def stop(self) -> None:
        self.server.stop()

    def hold(self, numbers: Mapping[str, int]) -> None:
        self.server.hold(numbers)

    def settings(self) -> Json:
        return {"url": self.hop.url, "basic": {"username": "reader", "passwordFile": str(self.password)}}

    def one(self, name: str) -> Json:
        return {"queue": name, "vhost": "/"}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"vhost": "/", "queue": name}

    def several(self) -> Json:
        return {"queues": ".*"}

    def nothing(self) -> Json:
        return {"queues": "nobody-.*"}

    @property
    def shown(self) -> str:
        return f"{self._good} or {self._sent(self._good)}"

    def expire(self) -> None:
        self._good = next(each for each in self._passwords if each != self._good)
        self.server.add_user("reader", self._good)

    def renew(self) -> None:
        self.password.write_text(f"{self._good}\n")

    def lose_secret(self) -> None:
        self.password.unlink()

    @staticmethod
    def _sent(password: str) -> str:
        """Write a password as it goes over the wire."""
        return b64encode(f"reader:{password}".encode()).decode()
