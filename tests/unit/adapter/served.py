"""The server in the event loop of the test, over plain HTTP, without real authentication."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from aiohttp import ClientSession, web

from adapter.auth.attributes import Attributes
from adapter.auth.authentication import Caller
from adapter.config.model import Limits
from adapter.errors import ReviewUnavailable
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.rules.query_builder import Query
from adapter.rules.rule import Rule, Series
from adapter.rules.rule_registry import RuleRegistry
from adapter.sample import RawSample
from adapter.server.accounting import RequestAccounting
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.listener import listen
from adapter.server.server import Server
from adapter.telemetry import Telemetry

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/m"


@dataclass
class BlockingBackend:
    """A backend that responds after the test has set ``may_respond``."""

    name: str = "blocking"
    queried: asyncio.Event = field(default_factory=asyncio.Event)
    may_respond: asyncio.Event = field(default_factory=asyncio.Event)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:  # noqa: ARG002
        self.queried.set()
        await self.may_respond.wait()
        return (RawSample(1.0, NOW),)

    async def ping(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


class TrustingAuth:
    """Takes the caller from X-Remote-User and X-Remote-Group, and authorizes everybody except ``unreviewable``."""

    async def authenticate(self, request: web.BaseRequest) -> Caller:
        return Caller(
            request.headers.get("X-Remote-User", "someone"), groups=tuple(request.headers.getall("X-Remote-Group", ()))
        )

    async def authorize(self, caller: Caller, attributes: Attributes, source: str) -> None:  # noqa: ARG002
        if caller.name == "unreviewable":
            raise ReviewUnavailable("SubjectAccessReview failed: connection refused")


@dataclass
class Assembled:
    """A server that is not running, with its backend, its metrics and its access log."""

    server: Server
    backend: BlockingBackend
    telemetry: Telemetry
    lines: list[dict[str, object]]

    def metric(self, name: str, **labels: str) -> float:
        return self.telemetry.registry.get_sample_value(name, labels) or 0.0


@dataclass
class Served(Assembled):
    """A running server and a client session."""

    session: ClientSession
    port: int


def assembled(limits: Limits | None = None) -> Assembled:
    backend, telemetry = BlockingBackend(), Telemetry()
    lines: list[dict[str, object]] = []
    sources = Sources(Fetcher({"static": backend}, lambda: NOW))
    reader = MetricReader(RuleRegistry([Rule("m", (Series(1.0),))]), sources, lambda: NOW + timedelta(seconds=1))

    def write_line(_: datetime, message: str, fields: Mapping[str, object]) -> None:
        lines.append({"msg": message, **fields})

    server = Server(
        metrics=ExternalMetrics(reader, lambda: NOW),
        authenticator=TrustingAuth(),
        authorizer=TrustingAuth(),
        limits=limits or Limits(drain_timeout=timedelta(seconds=1)),
        accounting=RequestAccounting(telemetry, write_line, lambda: NOW),
    )
    return Assembled(server, backend, telemetry, lines)


@asynccontextmanager
async def served(limits: Limits | None = None) -> AsyncIterator[Served]:
    it = assembled(limits)
    async with (
        it.server.serving(listen("127.0.0.1", 0), None) as port,
        ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        yield Served(it.server, it.backend, it.telemetry, it.lines, session, port)
