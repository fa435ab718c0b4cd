"""Contract peer: a real Kafka broker, advertised at the address of the proxy, with a user that may only describe."""

import struct
from collections.abc import Mapping
from typing import ClassVar

import pytest

from tests.backends.contract import Case, ContractPeer, Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.kafka_server import READER, Admin, KafkaServer

GROUP = "workers"


class Peer(ContractPeer):
    kind = "kafka"
    verified_against = "Apache Kafka 4.3 (Maven Central)"
    marks = (pytest.mark.broker,)
    inapplicable: ClassVar[Mapping[Case, str]] = {
        Case.THROTTLED: "Kafka throttles by delaying responses, which is the case of a slow server"
    }
    response_start = struct.pack(">i", 1_000_000)

    def start(self) -> None:
        self.secrets = ("first-password", "second-password")
        self.good = self.secrets[0]
        self.password = self.folder / "password"
        self.server = KafkaServer(self.folder / "server", advertised=self.proxy.port)
        self.server.start()
        self.admin = Admin(self.server)
        self.admin.open()
        self.admin.set_password(self.good)
        self.admin.allow()
        self.renew_credentials()
        self.proxy.upstream = (LOOPBACK, self.server.port)
        self._topics: set[str] = set()
        self._is_locked = False

    def stop(self) -> None:
        self.admin.close()
        self.server.stop()

    def set_values(self, numbers: Mapping[str, int]) -> None:
        for name in set(numbers) - self._topics:
            self.admin.topic(name, 2)
            self.admin.fill(name, 20, 20)
        self._topics |= set(numbers)
        lags = {(name, partition): number * partition for name, number in numbers.items() for partition in (0, 1)}
        self.admin.set_lag(GROUP, lags)

    def settings(self) -> Json:
        sasl = {"username": READER, "passwordFile": str(self.password)}
        return {"bootstrapServers": [self.proxy.address], "sasl": sasl}

    def parameters_for(self, name: str) -> Json:
        return {"group": GROUP, "topics": [name]}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"group": GROUP, "topic": name}

    def parameters_for_all(self) -> Json:
        return {"group": GROUP}

    def parameters_without_result(self) -> Json:
        return {"group": "empty-group"}

    def send_garbage(self) -> None:
        self.proxy.respond(struct.pack(">i", 12) + b"and nonsense")

    def reject_credentials(self) -> None:
        self._is_locked = True
        self._set_password("unused-password")

    def recover(self) -> None:
        super().recover()
        if self._is_locked:
            self._is_locked = False
            self._set_password(self.good)

    @property
    def current_secret(self) -> str:
        return self.good

    def expire_credentials(self) -> None:
        self.good = next(each for each in self.secrets if each != self.good)
        self._set_password(self.good)

    def renew_credentials(self) -> None:
        self.password.write_text(f"{self.good}\n")

    def remove_credentials(self) -> None:
        self.password.unlink()

    def _set_password(self, password: str) -> None:
        """Change the password and close open connections, which Kafka would not reauthenticate."""
        self.admin.set_password(password)
        self.proxy.refuse_connections()
        self.proxy.forward()
