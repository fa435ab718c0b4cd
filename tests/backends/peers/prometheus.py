"""A real Prometheus that scrapes what the test sets."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import ClassVar

import pytest

from tests.backends.contract import Case, HttpPeer, Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.prometheus.server import prometheus, require
from tests.prometheus.target import target


class Peer(HttpPeer):
    kind = "prometheus"
    verified_against = "Prometheus 2.42 (Debian 12)"
    marks = (pytest.mark.prometheus,)
    not_meant: ClassVar[Mapping[Case, str]] = {
        Case.RENEWED: "Prometheus itself admits anyone; that a token is read anew is shown in tests/prometheus",
        Case.PARAMETERS: "it is asked with a query, and whether that makes sense only Prometheus can tell",
    }
    secrets = ("token-that-nobody-checks",)

    def start(self) -> None:
        require()
        self._stack = ExitStack()
        self._scraped = self._stack.enter_context(target())
        self._server = self._stack.enter_context(prometheus(self.folder / "data", target=self._scraped.address))
        self._token = self.folder / "token"
        self.renew()
        self.hop.upstream = (LOOPBACK, self._server.port)

    def stop(self) -> None:
        self._stack.close()

    def hold(self, numbers: Mapping[str, int]) -> None:
        self._scraped.text = "".join(f'depth{{queue="{name}"}} {number}\n' for name, number in numbers.items())
        ends = time.monotonic() + 30
        while {row["metric"]["queue"]: int(row["value"][1]) for row in self._server.ask("depth")} != numbers:
            assert time.monotonic() < ends
            time.sleep(0.05)

    def settings(self) -> Json:
        return {"url": self.hop.url, "bearerTokenFile": str(self._token)}

    def asking(self, parameters: Json) -> Json:
        return parameters

    def one(self, name: str) -> Json:
        return {"query": f'sum by (queue) (depth{{queue="{name}"}})'}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"queue": name}

    def several(self) -> Json:
        return {"query": "sum by (queue) (depth)"}

    def nothing(self) -> Json:
        return self.unknown()

    def renew(self) -> None:
        self._token.write_text(self.secrets[0])

    def lose_secret(self) -> None:
        self._token.unlink()
