"""The server on loopback, in its own thread, with real TLS and certificates but without a cluster.

The trusted CAs are given instead of read from the ConfigMap, and TokenReviews and SubjectAccessReviews are answered
from a table. Everything else is the production code.
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
from adapter.auth.authentication import UnionAuthenticator
from adapter.auth.authorizer import SubjectAccessAuthorizer
from adapter.auth.certificates import CABundle
from adapter.auth.front_proxy import FrontProxyAuthenticator
from adapter.auth.peer_certificate import ClientCertificateAuthenticator, PeerCertificates
from adapter.auth.tokens import TokenAuthenticator
from adapter.auth.trust_store import TrustedAuthorities, TrustStore
from adapter.backends.static import StaticBackend
from adapter.config.loading import decode
from adapter.config.model import Auth, Limits
from adapter.debug.decision_log import DecisionLog
from adapter.errors import BackendRejected
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.process import clock
from adapter.rules.query_builder import Query
from adapter.rules.rule_registry import RuleRegistry
from adapter.sample import RawSample
from adapter.server.accounting import RequestAccounting
from adapter.server.debug_endpoints import DebugEndpoints, DebugSources
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.listener import listen
from adapter.server.server import Server
from adapter.telemetry import Telemetry
from adapter.tls.context import KeyPair, ServingContext
from autoscaler.kube.reviews import AccessDecision, Subject
from tests.control_plane.certificates import Authority
from tests.waiting import GIVE_UP

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
_PUBLIC_PATHS = ("/api", "/openapi", "/version")


class FailingBackend(StaticBackend):
    """Static values, except for three metrics that fail in different ways."""

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        behaviours = {series.labels.get("does") for series in query.static_series}
        if "refuse" in behaviours:
            raise BackendRejected("query rejected")
        if "stall" in behaviours:
            await asyncio.sleep(60)
        if "break" in behaviours:
            raise ZeroDivisionError("an internal detail")
        return await super().fetch(query, deadline)


@dataclass
class Reviews:
    """Review results: alice and bob may list metrics in ``default``, and bob, whose token is ``good``, may debug."""

    tokens: list[str] = field(default_factory=list)
    access_reviews: list[tuple[Subject, dict[str, Any]]] = field(default_factory=list)

    async def token(self, token: str) -> Subject | None:
        self.tokens.append(token)
        return Subject("bob", "uid-of-bob", (), {}) if token == "good" else None  # noqa: S105

    async def access(self, subject: Subject, attributes: dict[str, Any]) -> AccessDecision:
        self.access_reviews.append((subject, attributes))
        resource, path = attributes.get("resourceAttributes", {}), attributes.get("nonResourceAttributes")
        if path is not None:
            may_debug = subject.name == "bob" and path["path"].startswith("/debug/")
            allowed = may_debug or ("system:authenticated" in subject.groups and path["path"].startswith(_PUBLIC_PATHS))
        else:
            allowed = (
                subject.name in {"alice", "bob"} and resource["verb"] == "list" and resource["namespace"] == "default"
            )
        return AccessDecision(allowed, "")


@dataclass
class Loopback:
    """A running server."""

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
        """Return the paths of a client's certificate and key: fp, fpbad, alice, admin, x."""
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"


class _Thread(threading.Thread):
    """Runs the server in its own event loop until it is stopped."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        super().__init__(name="loopback")
        self._folder, self._limits = folder, limits
        self.started: Future[Loopback] = Future()
        self.stop: Callable[[], object] = lambda: None

    def run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # raised in the thread of the test, by started.result()
            if self.started.done():
                raise
            self.started.set_exception(error)

    async def _serve(self) -> None:
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        self.stop = partial(loop.call_soon_threadsafe, stopped.set)
        server, tls, reviews = assemble(self._folder, self._limits)
        async with server.serving(listen("127.0.0.1", 0), tls.listener) as port:
            self.started.set_result(Loopback(port, self._folder, reviews, server))
            await stopped.wait()


@contextmanager
def loopback(folder: Path, limits: Limits | None = None) -> Iterator[Loopback]:
    """Run the server for the length of the block."""
    thread = _Thread(folder, limits or Limits(drain_timeout=timedelta(seconds=2)))
    thread.start()
    try:
        yield thread.started.result(30)
    finally:
        thread.stop()
        thread.join(GIVE_UP)


def assemble(folder: Path, limits: Limits) -> tuple[Server, ServingContext, Reviews]:
    """Create a server, and client certificates of every kind in the folder."""
    clients, proxies, unknown, serving = (Authority.new(name) for name in ("client", "proxy", "unknown", "serving"))
    clients.client("alice", ["dev"]).save(folder, "alice")
    clients.client("root", ["system:masters"]).save(folder, "admin")
    proxies.client("front-proxy-client").save(folder, "fp")
    proxies.client("someone-else").save(folder, "fpbad")
    unknown.client("alice").save(folder, "x")
    (folder / "serving-ca.crt").write_text(serving.pem)

    tls, reviews = ServingContext(), Reviews()
    trust_store = TrustStore(lambda trusted: tls.use_client_cas(trusted.pem))
    trust_store.replace(
        TrustedAuthorities(
            clients=CABundle(clients.pem),
            front_proxies=CABundle(proxies.pem),
            allowed_names=frozenset({"front-proxy-client"}),
            user_headers=("X-Remote-User",),
            uid_headers=("X-Remote-Uid",),
            group_headers=("X-Remote-Group",),
            extra_prefixes=("X-Remote-Extra-",),
        )
    )
    certificate = serving.server("127.0.0.1", "localhost")
    tls.use_key_pair(KeyPair(certificate.certificate_pem, certificate.key_pem))
    peer_certificates = PeerCertificates(trust_store, clock)
    authenticators = (
        FrontProxyAuthenticator(trust_store, peer_certificates),
        ClientCertificateAuthenticator(peer_certificates),
        TokenAuthenticator(reviews.token, Auth()),
    )
    sources = Sources(Fetcher({"static": FailingBackend(clock)}, clock))
    reader = MetricReader(RuleRegistry(decode({"rules": RULES}).rules), sources, clock)
    server = Server(
        metrics=ExternalMetrics(reader, clock),
        authenticator=UnionAuthenticator(authenticators),
        authorizer=SubjectAccessAuthorizer(reviews.access, Auth()),
        limits=limits,
        accounting=RequestAccounting(Telemetry(), log.line_writer("json"), clock),
        debug=DebugEndpoints(DebugSources(DecisionLog(), reader, dict, clock), limits.request_timeout * 0.8),
    )
    return server, tls, reviews
