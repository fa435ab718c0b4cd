"""Construction of the server with its authentication, certificate and debug endpoints."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adapter import log
from adapter.auth.delegated_auth import AuthCacheTTLs, DelegatedAuth
from adapter.config.model import Config
from adapter.metrics.pipeline import MetricPipeline
from adapter.process import clock, running
from adapter.server.accounting import RequestAccounting
from adapter.server.debug_endpoints import DebugEndpoints
from adapter.server.debug_page import DebugPage, DebugSources
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.server import Server
from adapter.telemetry import Telemetry
from adapter.tls.context import ServingContext
from adapter.tls.source import certificate_source, load_and_refresh
from autoscaler.kube.client import KubeClient

_log = logging.getLogger(__name__)


@asynccontextmanager
async def serving(
    config: Config, kube: KubeClient, telemetry: Telemetry, pipeline: MetricPipeline, sources: DebugSources
) -> AsyncIterator[Server]:
    """Serve the external metrics API while the context is open.

    Certificates and the access log use the wall clock, because other processes compare them with theirs.
    """
    tls, reader = ServingContext(), pipeline.reader
    auth = DelegatedAuth.create(
        kube,
        clock,
        telemetry=telemetry,
        on_trust_change=lambda trusted: tls.use_client_cas(trusted.pem),
        ttls=AuthCacheTTLs(config.auth.token_cache_ttl, config.auth.authorized_ttl, config.auth.unauthorized_ttl),
    )
    certificate = certificate_source(config.serving.tls, kube, clock)
    page = DebugPage(sources, poll_timeout=config.limits.request_timeout * 0.8)
    server = Server(
        metrics=ExternalMetrics(reader, reader.clock),
        authenticator=auth.authenticator,
        authorizer=auth.authorizer,
        limits=config.limits,
        accounting=RequestAccounting(telemetry, log.line_writer(config.log.format), clock),
        ready={"trust": lambda: auth.trust_store.is_loaded, "serving-certificate": lambda: tls.has_certificate},
        debug=DebugEndpoints(reader, sources.problems, page, pipeline.comparisons),
    )
    async with (
        running({"trust": auth.run(), "serving certificate": load_and_refresh(certificate, tls)}),
        server.serving(config.serving.address, config.serving.port, tls.listener) as port,
    ):
        _log.info("serving", extra={"address": config.serving.address, "port": port})
        yield server
