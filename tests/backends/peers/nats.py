"""Contract peer: a real NATS server, with a user that has read permissions only."""

import time
from collections.abc import Mapping

import pytest

from tests.backends.contract import ContractPeer, Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.nats_server import PERMISSIONS, Admin, NatsServer


class Peer(ContractPeer):
    kind = "nats"
    verified_against = "NATS 2.9 (Debian 12)"
    marks = (pytest.mark.broker,)
    response_start = b'INFO {"server_id":"'

    def start(self) -> None:
        self.secrets = ("first-password", "second-password")
        self.good = self.secrets[0]
        self.password = self.folder / "password"
        self.server = NatsServer(self.folder / "server", self._user(self.good))
        self.server.start()
        self.admin = Admin(self.server)
        self.admin.connect()
        self.renew_credentials()
        self.proxy.upstream = (LOOPBACK, self.server.port)
        self.proxy.client_speaks_first = False
        self._is_locked = False

    def stop(self) -> None:
        self.admin.close()
        self.server.stop()

    def set_values(self, numbers: Mapping[str, int]) -> None:
        self.admin.set_values(numbers)

    def settings(self) -> Json:
        return {"addresses": [self.proxy.address], "username": "reader", "passwordFile": str(self.password)}

    def parameters_for(self, name: str) -> Json:
        return {"stream": name, "measure": "messages"}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"stream": name}

    def parameters_for_all(self) -> Json:
        return {"measure": "messages"}

    def parameters_without_result(self) -> Json:
        return {"stream": "orders", "measure": "pending"}  # the stream has no consumers

    def throttle(self) -> None:
        self.proxy.respond(b'INFO {"server_id":"x"}\r\n-ERR \'maximum connections exceeded\'\r\n')

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
        self.server.reload(self._user(password))
        while not self.proxy.is_idle:  # until the backend has noticed that NATS closed its connections
            time.sleep(0.01)

    @staticmethod
    def _user(password: str) -> str:
        return f"{{ user: reader, password: {password}, permissions: {PERMISSIONS} }}"
