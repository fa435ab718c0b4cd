"""The server in the test's own loop, over plain HTTP: for how it lives and stops, not for who may."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from aiohttp import ClientSession, web

from adapter.auth.attributes import Attributes
from adapter.auth.caller import Caller
from adapter.config.model import Limits
from adapter.errors import ReviewUnavailable
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import RuleReader, Sources
from adapter.rules.query_builder import Query
from adapter.rules.rule import Rule, Series
from adapter.rules.rule_registry import RuleRegistry
from adapter.sample import RawSample
from adapter.server.access_log import AccessLog
from adapter.server.accounting import Journal
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.server import Server
from adapter.telemetry import Telemetry

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/m"


@dataclass
class Gated:
    """A metric system that answers when the test lets it."""

    name: str = "gated"
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:  # noqa: ARG002
        self.asked.set()
        await self.may_answer.wait()
        return (RawSample(1.0, NOW),)


class Anyone:
    """Takes everybody's word: X-Remote-User is the caller and X-Remote-Group a group."""

    async def authenticate(self, request: web.BaseRequest) -> Caller:
        return Caller(
            request.headers.get("X-Remote-User", "someone"), groups=tuple(request.headers.getall("X-Remote-Group", ()))
        )

    async def authorize(self, caller: Caller, attributes: Attributes) -> None:  # noqa: ARG002
        if caller.name == "unreviewable":
            raise ReviewUnavailable("access could not be reviewed: nobody answers")


@dataclass
class Assembled:
    """A server that does not run yet, its metric system, its figures and what it has logged."""

    server: Server
    backend: Gated
    telemetry: Telemetry
    written: list[dict[str, object]]

    @property
    def lines(self) -> list[dict[str, object]]:
        self.server._journal.write()
        return self.written

    def figure(self, name: str, **labels: str) -> float:
        self.server._journal.write()
        return self.telemetry.registry.get_sample_value(name, labels) or 0.0


@dataclass
class Served(Assembled):
    """A server that runs, and a session to it."""

    session: ClientSession
    port: int


def assembled(limits: Limits | None = None) -> Assembled:
    backend, telemetry, lines = Gated(), Telemetry(), []
    sources = Sources.of(Fetcher({"static": backend}, lambda: NOW))
    reader = RuleReader(RuleRegistry([Rule("m", (Series(1.0),))]), sources, lambda: NOW + timedelta(seconds=1))
    log = AccessLog(lambda _at, says, told: lines.extend({"msg": says, **facts} for facts in told), lambda: NOW)
    server = Server(
        metrics=ExternalMetrics(reader, lambda: NOW),
        authenticator=Anyone(),
        authorizer=Anyone(),
        limits=limits or Limits(drain=timedelta(seconds=1)),
        journal=Journal(telemetry, log),
    )
    return Assembled(server, backend, telemetry, lines)


@asynccontextmanager
async def served(limits: Limits | None = None) -> AsyncIterator[Served]:
    it = assembled(limits)
    async with it.server.serving("127.0.0.1", 0, None) as port, ClientSession(f"http://127.0.0.1:{port}") as session:
        yield Served(it.server, it.backend, it.telemetry, it.written, session, port)
