"""A real Kafka that says its address is the hop's, asked for the lag of a group by a user who may only describe."""

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
    not_meant: ClassVar[Mapping[Case, str]] = {
        Case.THROTTLED: "Kafka does not refuse who asks too often, it answers later, and that is the case of being slow"
    }
    begins = struct.pack(">i", 1_000_000)
    patience = 10.0

    def start(self) -> None:
        self.secrets = ("first-password-of-ours", "second-password-of-ours")
        self.good = self.secrets[0]
        self.password = self.folder / "password"
        self.server = KafkaServer(self.folder / "server", advertised=self.hop.port)
        self.server.start()
        self.admin = Admin(self.server)
        self.admin.open()
        self.admin.believe(self.good)
        self.admin.allow()
        self.renew()
        self.hop.upstream = (LOOPBACK, self.server.port)
        self._topics: set[str] = set()
        self._is_locked = False

    def stop(self) -> None:
        self.admin.close()
        self.server.stop()

    def hold(self, numbers: Mapping[str, int]) -> None:
        for name in set(numbers) - self._topics:
            self.admin.topic(name, 2)
            self.admin.fill(name, 20, 20)
        self._topics |= set(numbers)
        lags = {(name, place): number * place for name, number in numbers.items() for place in (0, 1)}
        self.admin.behind(GROUP, lags)

    def settings(self) -> Json:
        sasl = {"username": READER, "passwordFile": str(self.password)}
        return {"bootstrapServers": [self.hop.address], "sasl": sasl}

    def one(self, name: str) -> Json:
        return {"group": GROUP, "topics": [name]}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"group": GROUP, "topic": name}

    def several(self) -> Json:
        return {"group": GROUP}

    def nothing(self) -> Json:
        return {"group": "nobody-is-in-it"}

    def talk_nonsense(self) -> None:
        self.hop.answer(struct.pack(">i", 12) + b"and nonsense")

    def lock_out(self) -> None:
        self._is_locked = True
        self._believe("nobody-has-this-password")

    def recover(self) -> None:
        super().recover()
        if self._is_locked:
            self._is_locked = False
            self._believe(self.good)

    @property
    def shown(self) -> str:
        return self.good

    def expire(self) -> None:
        self.good = next(each for each in self.secrets if each != self.good)
        self._believe(self.good)

    def renew(self) -> None:
        self.password.write_text(f"{self.good}\n")

    def lose_secret(self) -> None:
        self.password.unlink()

    def _believe(self, password: str) -> None:
        """Change the password; Kafka goes on believing connections that are open, so end them."""
        self.admin.believe(password)
        self.hop.refuse()
        self.hop.delegate()
