"""Our own server on loopback, in a thread of its own: real TLS, real certificates, reviews answered from a table.

What it does not have is a cluster: the trust that is otherwise read from a configmap is given, and the two kinds of
review are answered here. Everything between the socket and those two answers is the real thing.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from adapter import log
from adapter.app import clock
from adapter.auth.authentication import Authentication
from adapter.auth.authorizer import Access
from adapter.auth.certificates import Authorities
from adapter.auth.client_certificates import ClientCertificates
from adapter.auth.front_proxy import FrontProxy
from adapter.auth.peer_certificate import Peers
from adapter.auth.tokens import Tokens
from adapter.auth.trust_store import Trust, Trusted
from adapter.backends.static import StaticBackend
from adapter.config.model import Limits, decode
from adapter.debug.decision_log import Shelf
from adapter.errors import BackendRejected
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import RuleReader, Sources
from adapter.rules.query_builder import Query
from adapter.rules.rule_registry import RuleRegistry
from adapter.sample import RawSample
from adapter.server.access_log import AccessLog
from adapter.server.accounting import Journal
from adapter.server.debug_endpoints import Debug
from adapter.server.debug_page import Exhibits, Page
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.server import Server
from adapter.telemetry import Telemetry
from adapter.tls.context import Pair, ServingContext
from autoscaler.kube.reviews import Subject, Verdict
from tests.control_plane.certificates import Authority

RULES = [
    {"name": "my-metric", "static": [{"value": 1.1, "labels": {"foo": "bar"}}, {"value": 2, "labels": {"foo": "baz"}}]},
    {"name": "tiny", "static": [{"value": 0.0001}]},
    {"name": "whole", "static": [{"value": 2.0}]},
    {"name": "MixedCase", "static": [{"value": 7}]},
    {"name": "elsewhere", "namespaces": ["other"], "static": [{"value": 1}]},
    {"name": "negative", "static": [{"value": -3}]},
    {"name": "not-a-number", "static": [{"value": float("nan")}]},
    {"name": "infinite", "static": [{"value": float("inf")}]},
    {"name": "huge", "static": [{"value": 1e30}]},
    {"name": "too-large", "static": [{"value": 1e16}]},
    {"name": "old", "static": [{"value": 1, "age": "10m"}]},
    {"name": "refused", "static": [{"value": 1, "labels": {"does": "refuse"}}]},
    {"name": "slow", "static": [{"value": 1, "labels": {"does": "stall"}}]},
    {"name": "broken", "static": [{"value": 1, "labels": {"does": "break"}}]},
]
_OPEN_TO_ALL = ("/api", "/openapi", "/version")


class Rehearsal(StaticBackend):
    """Fixed numbers, but for three metrics that fail as a metric system can."""

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        does = {series.labels.get("does") for series in query.numbers}
        if "refuse" in does:
            raise BackendRejected("it said no")
        if "stall" in does:
            await asyncio.sleep(60)
        if "break" in does:
            raise ZeroDivisionError("a secret of ours")
        return await super().fetch(query, deadline)


@dataclass
class Reviews:
    """The API server's opinion: alice and bob may list our metrics in ``default``; the token ``good`` is bob's.

    Bob is an operator and may also look into the service.
    """

    tokens: list[str] = field(default_factory=list)
    wishes: list[tuple[Subject, dict[str, Any]]] = field(default_factory=list)

    async def token(self, token: str) -> Subject | None:
        self.tokens.append(token)
        return Subject("bob", "uid-of-bob", (), {}) if token == "good" else None  # noqa: S105

    async def access(self, subject: Subject, wanted: dict[str, Any]) -> Verdict:
        self.wishes.append((subject, wanted))
        resource, path = wanted.get("resourceAttributes"), wanted.get("nonResourceAttributes")
        if path is not None:
            may_look = subject.name == "bob" and path["path"].startswith("/debug/")
            allowed = may_look or ("system:authenticated" in subject.groups and path["path"].startswith(_OPEN_TO_ALL))
        else:
            allowed = (
                subject.name in {"alice", "bob"} and resource["verb"] == "list" and resource["namespace"] == "default"
            )
        return Verdict(allowed, "")


@dataclass
class Loopback:
    """A server that is running."""

    port: int
    folder: Path
    reviews: Reviews
    server: Server

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca(self) -> Path:
        return self.folder / "serving-ca.crt"

    def credentials(self, name: str) -> tuple[Path, Path]:
        """Where a client's certificate and key are: fp, fpbad, alice, admin, x."""
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"


class _Thread(threading.Thread):
    """Runs the server in a loop of its own until told to stop."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        super().__init__(name="loopback")
        self._folder, self._limits = folder, limits
        self.started: Future[Loopback] = Future()
        self.stop: Callable[[], object] = lambda: None

    def run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # told to the test, in its own thread
            if self.started.done():
                raise
            self.started.set_exception(error)

    async def _serve(self) -> None:
        told, loop = asyncio.Event(), asyncio.get_running_loop()
        self.stop = partial(loop.call_soon_threadsafe, told.set)
        server, tls, reviews = assemble(self._folder, self._limits)
        async with server.serving("127.0.0.1", 0, tls.listener) as port:
            self.started.set_result(Loopback(port, self._folder, reviews, server))
            await told.wait()


@contextmanager
def loopback(folder: Path, limits: Limits | None = None) -> Iterator[Loopback]:
    """Run the server while the block runs."""
    thread = _Thread(folder, limits or Limits(drain=timedelta(seconds=2)))
    thread.start()
    try:
        yield thread.started.result(30)
    finally:
        thread.stop()
        thread.join(30)


def assemble(folder: Path, limits: Limits) -> tuple[Server, ServingContext, Reviews]:
    """Put a server together, with certificates for callers of every kind in the folder."""
    clients, proxies, strangers, serving = (Authority.new(name) for name in ("client", "proxy", "stranger", "serving"))
    clients.client("alice", ["dev"]).save(folder, "alice")
    clients.client("root", ["system:masters"]).save(folder, "admin")
    proxies.client("front-proxy-client").save(folder, "fp")
    proxies.client("someone-else").save(folder, "fpbad")
    strangers.client("alice").save(folder, "x")
    (folder / "serving-ca.crt").write_text(serving.pem)

    trusted, tls, reviews = Trusted(), ServingContext(), Reviews()
    trusted.tell(lambda trust: tls.ask_for(trust.front_proxies.pem + trust.clients.pem))
    trusted.replace(
        Trust(
            clients=Authorities(clients.pem),
            front_proxies=Authorities(proxies.pem),
            allowed_names=frozenset({"front-proxy-client"}),
            user_headers=("X-Remote-User",),
            uid_headers=("X-Remote-Uid",),
            group_headers=("X-Remote-Group",),
            extra_prefixes=("X-Remote-Extra-",),
        )
    )
    own = serving.server("127.0.0.1", "localhost")
    tls.serve_with(Pair(own.certificate_pem, own.key_pem))
    peers = Peers(trusted, clock)
    reader = RuleReader(
        RuleRegistry(decode({"rules": RULES}).rules), Sources.of(Fetcher({"static": Rehearsal(clock)}, clock)), clock
    )
    server = Server(
        metrics=ExternalMetrics(reader, clock),
        authenticator=Authentication((FrontProxy(trusted, peers), ClientCertificates(peers), Tokens(reviews.token))),
        authorizer=Access(reviews.access),
        limits=limits,
        journal=Journal(Telemetry(), AccessLog(log.writer("json"), clock)),
        debug=Debug(reader, dict, Page(Exhibits(Shelf(), reader, dict, clock), limits.request_timeout * 0.8)),
    )
    return server, tls, reviews
