"""The real server with the debugging page, over plain HTTP on loopback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

from aiohttp import web

from adapter.backends.backend import Backend
from adapter.backends.static import StaticBackend
from adapter.config.loading import decode
from adapter.config.model import Limits
from adapter.debug.decision_log import DecisionLog
from adapter.errors import BackendRejected
from adapter.history.service import DecisionHistoryService
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.rules.rule_registry import RuleRegistry
from adapter.server.accounting import RequestAccounting
from adapter.server.debug_endpoints import DebugEndpoints, DebugSources
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.leader_forwarding import LeaderForwarding, NotForwarded
from adapter.server.listener import listen
from adapter.server.request_context import RequestContext
from adapter.server.server import Server
from adapter.telemetry import Telemetry
from autoscaler.values.selector import Selector
from tests.browser.sample_decisions import END, HOSTILE
from tests.browser.sample_history import RecordedLog, recorded_history
from tests.fakes.backend import ScriptedBackend, raw
from tests.unit.adapter.served import TrustingAuth

Handler = Callable[[RequestContext], Awaitable[web.StreamResponse]]
ORDERS = 'sum by (queue) (orders_waiting{job="broker"})'
RULES = [
    {"name": "orders_waiting", "backend": "prometheus", "query": ORDERS},
    {
        "name": "mails_waiting",
        "backend": "mail-prometheus",
        "query": "sum(mails_waiting)",
        "interval": "10m",  # a rule is idle after four intervals without a read
    },
    {"name": "strange", "static": [{"value": 7, "labels": {"what": HOSTILE, "from": "outside"}}]},
]
BACKENDS = {
    "prometheus": {"prometheus": {"url": "http://prometheus.monitoring:9090"}},
    "mail-prometheus": {"prometheus": {"url": "http://prometheus.mail:9090"}},
}


@dataclass
class SilentReplicas:
    """Other replicas that control shards and do not respond."""

    addresses: list[str] = field(default_factory=list)

    @property
    def leadership(self) -> "SilentReplicas":
        return self

    def peers(self) -> tuple[str, ...]:
        return tuple(self.addresses)

    async def get(self, *_: object) -> NotForwarded:
        return NotForwarded("no response in time")

    async def forward(self, *_: object) -> NotForwarded:
        return NotForwarded("")

    def first(self, handler: Handler, *_: object) -> Handler:
        return handler


@dataclass
class ServedPage:
    """The page, and what a test may change about it."""

    url: str
    log: DecisionLog
    server: Server
    started: float
    leader: str = ""
    silent: SilentReplicas = field(kw_only=True)
    history: DecisionHistoryService = field(kw_only=True)

    def now(self) -> datetime:
        return END + timedelta(seconds=asyncio.get_running_loop().time() - self.started)


@asynccontextmanager
async def serve_page(port: int = 0) -> AsyncIterator[ServedPage]:
    """Serve the page while the block runs; the clock starts at the end of the sample decisions."""
    loop = asyncio.get_running_loop()
    started = loop.time()

    def clock() -> datetime:
        return END + timedelta(seconds=loop.time() - started)

    history = recorded_history(clock)
    log = RecordedLog(history)

    working, failing = ScriptedBackend("prometheus"), ScriptedBackend("mail-prometheus")
    working.results[ORDERS] = (
        raw(412, END, namespace="shop", queue="orders"),
        raw(3, END, namespace="shop", queue="returns"),
    )
    failing.results["sum(mails_waiting)"] = BackendRejected("connection refused")
    config = decode({"rules": RULES, "backends": BACKENDS})
    backends: dict[str, Backend] = {"prometheus": working, "mail-prometheus": failing, "static": StaticBackend(clock)}
    reader = MetricReader(RuleRegistry(config.rules), Sources(Fetcher(backends, clock)), clock)
    for metric in ("orders_waiting", "mails_waiting"):
        await reader.read("shop", metric, Selector())
    silent = SilentReplicas()
    sources = DebugSources(
        log,
        reader,
        dict,
        clock,
        leader=lambda: page.leader,
        history=history,
        forwarding=cast("LeaderForwarding", silent),
    )
    server = Server(
        metrics=ExternalMetrics(reader, clock),
        authenticator=TrustingAuth(),
        authorizer=TrustingAuth(),
        limits=Limits(drain_timeout=timedelta(seconds=1)),
        accounting=RequestAccounting(Telemetry(), lambda _time, _message, _fields: None, clock),
        debug=DebugEndpoints(sources, timedelta(seconds=2)),
    )
    try:
        async with server.serving(listen("127.0.0.1", port), None) as bound:
            page = ServedPage(f"http://127.0.0.1:{bound}", log, server, started, silent=silent, history=history)
            yield page
    finally:
        await reader.sources.aclose()
