"""Contract peer: a real Redis server. It measures streams, because they exist while they are empty, unlike lists."""

import time
from collections.abc import Mapping

import pytest

from tests.backends.contract import ContractPeer, Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.redis_server import READER, RedisServer


class Peer(ContractPeer):
    kind = "redis"
    verified_against = "Redis 7.0 (Debian 12)"
    marks = (pytest.mark.broker,)
    response_start = b"$1000000\r\n"

    def start(self) -> None:
        self.server = RedisServer(self.folder / "server")
        self.server.start()
        self.secrets = ("first-password", "second-password")
        self.good = self.secrets[0]
        self.password = self.folder / "password"
        self.server.set_password(self.good)
        self.renew_credentials()
        self.proxy.upstream = (LOOPBACK, self.server.port)
        self._is_locked = False

    def stop(self) -> None:
        self.server.stop()

    def set_values(self, numbers: Mapping[str, int]) -> None:
        with self.server.client() as client:
            client.flushall()
            for name, number in numbers.items():
                client.xgroup_create(name, "workers", mkstream=True)
                for _ in range(number):
                    client.xadd(name, {"work": "1"})

    def settings(self) -> Json:
        return {"addresses": [self.proxy.address], "username": READER, "passwordFile": str(self.password)}

    def parameters_for(self, name: str) -> Json:
        return {"key": name, "measure": "streamLength"}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"key": name}

    def parameters_for_all(self) -> Json:
        return {"keys": "*", "measure": "streamLength"}

    def parameters_without_result(self) -> Json:
        return {"keys": "missing-*", "measure": "streamLength"}

    def throttle(self) -> None:
        self.proxy.respond(b"-ERR max number of clients reached\r\n")

    def reject_credentials(self) -> None:
        self.server.disable_user()
        self._is_locked = True

    def recover(self) -> None:
        super().recover()
        if self._is_locked:
            self.server.set_password(self.good)
            self._is_locked = False

    @property
    def current_secret(self) -> str:
        return self.good

    def expire_credentials(self) -> None:
        self.good = next(each for each in self.secrets if each != self.good)
        self.server.set_password(self.good)
        while not self.proxy.is_idle:  # until the backend has noticed that Redis closed its connections
            time.sleep(0.01)

    def renew_credentials(self) -> None:
        self.password.write_text(f"{self.good}\n")

    def remove_credentials(self) -> None:
        self.password.unlink()
