"""Contract peer: a real PostgreSQL server with TLS, with a user that may read one table."""

from collections.abc import Mapping

import pytest

from autoscaler.types.observation import FailureClass
from tests.backends.contract import ContractPeer, Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.postgresql_server import PostgreSqlServer


class Peer(ContractPeer):
    kind = "postgresql"
    verified_against = "PostgreSQL 15 (Debian 12)"
    marks = (pytest.mark.broker,)
    unknown_failure = FailureClass.BAD_QUERY  # a table that does not exist
    response_start = b"\x17\x03\x03\x40\x00"  # header of a TLS record of 16 KiB

    def start(self) -> None:
        self.server = PostgreSqlServer(self.folder)
        self.server.start()
        self.secrets = ("first-password", "second-password")
        self._good = self.secrets[0]
        self.password = self.folder / "password"
        self.renew_credentials()
        self.server.run(
            "CREATE TABLE depths (queue text, depth bigint)",
            f"CREATE ROLE reader LOGIN PASSWORD '{self._good}'",
            "GRANT SELECT ON depths TO reader",
            "CREATE TABLE salaries (salary bigint)",
            "CREATE ROLE with_certificate LOGIN",
        )
        self.proxy.upstream = (LOOPBACK, self.server.port)

    def stop(self) -> None:
        self.server.stop()

    def set_values(self, numbers: Mapping[str, int]) -> None:
        self.server.set_values(numbers)

    def settings(self) -> Json:
        return {
            "host": "localhost",
            "port": self.proxy.port,
            "database": "postgres",
            "username": "reader",
            "passwordFile": str(self.password),
            "tls": {"caFile": str(self.server.ca_file)},
        }

    def parameters_for(self, name: str) -> Json:
        return {"query": f"SELECT queue, depth AS value FROM depths WHERE queue = '{name}'"}  # noqa: S608 - a constant

    def labels(self, name: str) -> Mapping[str, str]:
        return {"queue": name}

    def parameters_for_all(self) -> Json:
        return {"query": "SELECT queue, depth AS value FROM depths"}

    def parameters_without_result(self) -> Json:
        return self.parameters_for("missing")

    def parameters_for_unknown(self) -> Json:
        return {"query": "SELECT count(*) FROM no_such_table"}

    # ---- failures

    def throttle(self) -> None:
        self.server.run("ALTER ROLE reader CONNECTION LIMIT 0")
        self.server.drop_sessions()

    def reject_credentials(self) -> None:
        self.server.run("ALTER ROLE reader NOLOGIN")
        self.server.drop_sessions()

    def send_garbage(self) -> None:
        self.proxy.respond(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    def recover(self) -> None:
        super().recover()
        self.server.run("ALTER ROLE reader LOGIN CONNECTION LIMIT -1")

    # ---- secrets

    @property
    def current_secret(self) -> str:
        return self._good

    def expire_credentials(self) -> None:
        self._good = next(each for each in self.secrets if each != self._good)
        self.server.run(f"ALTER ROLE reader PASSWORD '{self._good}'")
        self.server.drop_sessions()  # PostgreSQL does not end sessions when a password changes

    def renew_credentials(self) -> None:
        self.password.write_text(f"{self._good}\n")

    def remove_credentials(self) -> None:
        self.password.unlink()
