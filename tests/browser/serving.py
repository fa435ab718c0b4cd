"""The real server with the real page, over plain HTTP on loopback, for as long as a test looks at it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapter.backends.static import StaticBackend
from adapter.config.model import Limits, decode
from adapter.debug.decision_log import Shelf
from adapter.errors import BackendRejected
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import RuleReader, Sources
from adapter.rules.rule_registry import RuleRegistry
from adapter.server.access_log import AccessLog
from adapter.server.accounting import Journal
from adapter.server.debug_endpoints import Debug
from adapter.server.debug_page import Exhibits, Page
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.server import Server
from adapter.telemetry import Telemetry
from autoscaler.values.selector import Selector
from tests.browser.story import END, HOSTILE
from tests.fakes.backend import ScriptedBackend, raw
from tests.unit.adapter.served import Anyone

ORDERS = 'sum by (queue) (orders_waiting{job="broker"})'
RULES = [
    {"name": "orders_waiting", "backend": "prometheus", "query": ORDERS},
    {"name": "mails_waiting", "backend": "mail-prometheus", "query": "sum(mails_waiting)"},
    {"name": "strange", "static": [{"value": 7, "labels": {"what": HOSTILE, "from": "outside"}}]},
]
BACKENDS = {
    "prometheus": {"prometheus": {"url": "http://prometheus.monitoring:9090"}},
    "mail-prometheus": {"prometheus": {"url": "http://prometheus.mail:9090"}},
}


@dataclass
class Shown:
    """A page that is served, and all that a test may change about it."""

    url: str
    shelf: Shelf
    scripted: ScriptedBackend
    broken: ScriptedBackend
    server: Server
    started: float

    def now(self) -> datetime:
        return END + timedelta(seconds=asyncio.get_running_loop().time() - self.started)


@asynccontextmanager
async def page(port: int = 0) -> AsyncIterator[Shown]:
    """Serve the page while the block runs."""
    loop = asyncio.get_running_loop()
    started, shelf = loop.time(), Shelf()

    def clock() -> datetime:
        return END + timedelta(seconds=loop.time() - started)

    good, bad = ScriptedBackend("prometheus"), ScriptedBackend("mail-prometheus")
    good.rows[ORDERS] = (
        raw(412, END, namespace="shop", queue="orders"),
        raw(3, END, namespace="shop", queue="returns"),
    )
    bad.rows["sum(mails_waiting)"] = BackendRejected("connection refused")
    config = decode({"rules": RULES, "backends": BACKENDS})
    backends = {"prometheus": good, "mail-prometheus": bad, "static": StaticBackend(clock)}
    reader = RuleReader(RuleRegistry(config.rules), Sources.of(Fetcher(backends, clock)), clock)
    for metric in ("orders_waiting", "mails_waiting"):
        await reader.look("shop", metric, Selector())
    server = Server(
        metrics=ExternalMetrics(reader, clock),
        authenticator=Anyone(),
        authorizer=Anyone(),
        limits=Limits(drain=timedelta(seconds=1)),
        journal=Journal(Telemetry(), AccessLog(lambda _at, _says, _facts: None, clock)),
        debug=Debug(reader, dict, Page(Exhibits(shelf, reader, dict, clock), timedelta(seconds=2))),
    )
    try:
        async with server.serving("127.0.0.1", port, None) as bound:
            yield Shown(f"http://127.0.0.1:{bound}", shelf, good, bad, server, started)
    finally:
        await reader.sources.aclose()
