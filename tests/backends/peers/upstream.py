"""Contract peer: a second Steadyscale server in a thread, with rules set by the test."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any, ClassVar

from aiohttp import web

from adapter.auth.attributes import Attributes
from adapter.auth.authentication import Caller
from adapter.backends.static import StaticBackend
from adapter.config.model import Limits
from adapter.errors import Unauthenticated
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.process import clock
from adapter.rules.rule import Rule, Series
from adapter.rules.rule_registry import RuleRegistry
from adapter.server.accounting import RequestAccounting
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.listener import listen
from adapter.server.server import Server
from adapter.telemetry import Telemetry
from autoscaler.types.observation import FailureClass
from tests.backends.contract import Case, HttpPeer, Json
from tests.waiting import GIVE_UP


class Peer(HttpPeer):
    kind = "upstream"
    verified_against = "a second Steadyscale"
    unknown_failure = FailureClass.UNKNOWN_METRIC
    inapplicable: ClassVar = {
        Case.EMPTY: "Steadyscale reports an empty result as an error; test_upstream tests an empty list"
    }

    def start(self) -> None:
        self.token = self.folder / "token"
        self.secrets = ("first-token", "second-token")
        self._good = self.secrets[0]
        self.renew_credentials()
        self._loop = asyncio.new_event_loop()
        self._registry, self._stopped, started = RuleRegistry(), asyncio.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="peer upstream")
        self._thread.start()
        assert started.wait(GIVE_UP)

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve(started))
        self._loop.close()

    async def _serve(self, started: threading.Event) -> None:
        sources = Sources(Fetcher({"static": StaticBackend(clock)}, clock))
        reader = MetricReader(self._registry, sources, clock)
        server = Server(
            metrics=ExternalMetrics(reader, clock),
            authenticator=self,
            authorizer=self,
            limits=Limits(),
            accounting=RequestAccounting(Telemetry(), lambda *_: None, clock),
        )
        async with server.serving(listen("127.0.0.1", 0), None) as port:
            self.proxy.upstream = ("127.0.0.1", port)
            started.set()
            await self._stopped.wait()
        await sources.aclose()

    async def authenticate(self, request: web.BaseRequest) -> Caller:
        if request.headers.get("Authorization") != f"Bearer {self._good}":
            raise Unauthenticated("wrong token")
        return Caller("steadyscale", groups=())

    async def authorize(self, caller: Caller, attributes: Attributes, source: str) -> None:
        """Allow everything."""

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(GIVE_UP)

    def set_values(self, numbers: Mapping[str, int]) -> None:
        single = [Rule(name, (Series(number, {"queue": name}),)) for name, number in numbers.items()]
        combined = Rule("all", tuple(Series(number, {"queue": name}) for name, number in numbers.items()))
        done: Any = asyncio.run_coroutine_threadsafe(self._use([*single, combined]), self._loop)
        done.result(20)

    async def _use(self, rules: list[Rule]) -> None:
        self._registry.set_file_rules(rules)

    def settings(self) -> Json:
        return {"url": self.proxy.url, "bearerTokenFile": str(self.token)}

    def parameters_for(self, name: str) -> Json:
        return {"namespace": "shop", "metric": name}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"queue": name}

    def parameters_for_all(self) -> Json:
        return {"namespace": "shop", "metric": "all"}

    def send_garbage(self) -> None:
        self.proxy.respond_http(200, b'{"kind": "List", "items": []}')

    @property
    def current_secret(self) -> str:
        return self._good

    def expire_credentials(self) -> None:
        self._good = next(each for each in self.secrets if each != self._good)

    def renew_credentials(self) -> None:
        self.token.write_text(self._good)

    def remove_credentials(self) -> None:
        self.token.unlink()
