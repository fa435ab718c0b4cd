"""A real Prometheus that scrapes a target whose values the test sets."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import ClassVar

import pytest

from tests.backends.contract import Case, HttpPeer, Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.prometheus.server import prometheus, require
from tests.prometheus.target import target
from tests.waiting import GIVE_UP


class Peer(HttpPeer):
    kind = "prometheus"
    verified_against = "Prometheus 2.42 (Debian 12)"
    marks = (pytest.mark.prometheus,)
    inapplicable: ClassVar[Mapping[Case, str]] = {
        Case.RENEWED: "Prometheus has no authentication; tests/prometheus covers the renewal of tokens",
        Case.PARAMETERS: "rules have a query instead of parameters, and only Prometheus can validate it",
    }
    secrets = ("token-that-is-not-checked",)

    def start(self) -> None:
        require()
        self._stack = ExitStack()
        self._scraped = self._stack.enter_context(target())
        self._server = self._stack.enter_context(prometheus(self.folder / "data", target=self._scraped.address))
        self._token = self.folder / "token"
        self.renew_credentials()
        self.proxy.upstream = (LOOPBACK, self._server.port)

    def stop(self) -> None:
        self._stack.close()

    def set_values(self, numbers: Mapping[str, int]) -> None:
        self._scraped.text = "".join(f'depth{{queue="{name}"}} {number}\n' for name, number in numbers.items())
        ends = time.monotonic() + GIVE_UP
        while {row["metric"]["queue"]: int(row["value"][1]) for row in self._server.query("depth")} != numbers:
            assert time.monotonic() < ends
            time.sleep(0.05)

    def settings(self) -> Json:
        return {"url": self.proxy.url, "bearerTokenFile": str(self._token)}

    def rule_fields(self, parameters: Json) -> Json:
        return parameters

    def parameters_for(self, name: str) -> Json:
        return {"query": f'sum by (queue) (depth{{queue="{name}"}})'}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"queue": name}

    def parameters_for_all(self) -> Json:
        return {"query": "sum by (queue) (depth)"}

    def parameters_without_result(self) -> Json:
        return self.parameters_for_unknown()

    def renew_credentials(self) -> None:
        self._token.write_text(self.secrets[0])

    def remove_credentials(self) -> None:
        self._token.unlink()
