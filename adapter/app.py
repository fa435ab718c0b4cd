"""The composition root: constructs the service, runs it, and closes its resources in reverse order."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from adapter import log
from adapter.auth.delegated_auth import DelegatedAuth
from adapter.backends.loader import create_backend
from adapter.config.loading import ConfigFile, Loaded
from adapter.config.model import Config
from adapter.custom_resources.status_writer import ExternalMetricStatusWriter
from adapter.custom_resources.watcher import ExternalMetricWatcher
from adapter.debug.decision_log import DecisionLog
from adapter.metrics.imported_rules import ImportedRules
from adapter.metrics.in_process import InProcessMetrics
from adapter.metrics.pipeline import MetricPipeline
from adapter.process import clock, running, stop_event, tune_garbage_collector
from adapter.server.accounting import RequestAccounting
from adapter.server.debug_endpoints import DebugEndpoints, DebugSources
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.server import Server
from adapter.telemetry import Telemetry
from adapter.tls.context import ServingContext
from adapter.tls.source import certificate_source, load_and_refresh
from autoscaler.controller.run import ControllerProcess
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.kube.metrics import KubeMetrics
from autoscaler.kube.tasks import Run
from autoscaler.ports import Clock, DecisionListener
from autoscaler.settings import ControllerOptions
from autoscaler.telemetry import ControllerTelemetry, StateCollector

_log = logging.getLogger(__name__)


class Components(NamedTuple):
    """The parts of the service that run in this process."""

    adapter: bool = True
    """Whether the external metrics API is served."""

    autoscaler: ControllerOptions | None = None
    """Options of the autoscaler; None: it does not run."""


class Environment(NamedTuple):
    """Inputs of the service that the demonstration and tests replace."""

    stop: asyncio.Event
    clock: Clock = clock
    listeners: tuple[DecisionListener, ...] = ()


async def serve(file: ConfigFile, loaded: Loaded, components: Components) -> None:
    """Run the service until SIGTERM or SIGINT."""
    tune_garbage_collector()
    await run(file, loaded, components, Environment(stop_event()))


async def run(file: ConfigFile, loaded: Loaded, components: Components, environment: Environment) -> None:
    """Run the service until ``environment.stop`` is set, then shut it down."""
    config, telemetry, decision_log = loaded.config, Telemetry(), DecisionLog()
    connection = await connect(Path(config.auth.kubeconfig) if config.auth.kubeconfig else None)
    metrics = KubeMetrics(telemetry.registry)
    async with KubeClient.open(connection, metrics) as kube:
        pipeline = MetricPipeline(loaded, create_backend, environment.clock, telemetry)
        watcher = ExternalMetricWatcher(
            kube, pipeline.registry, config.backends, config.tenant_limits, telemetry.count_rejection
        )
        controller = None
        if components.autoscaler is not None:
            controller = ControllerProcess(
                connection,
                InProcessMetrics(pipeline.reader),
                components.autoscaler,
                ControllerTelemetry(telemetry.registry),
                environment.clock,
                listeners=(decision_log, *environment.listeners),
                metrics=metrics,
            )
            telemetry.registry.register(StateCollector(controller.states, environment.clock))
        sources = DebugSources(
            decision_log,
            pipeline.reader,
            lambda: watcher.problems,
            environment.clock,
            leader=lambda: "" if controller is None else controller.leader,
            comparisons=pipeline.comparisons,
        )
        async with (
            aclosing(pipeline),
            running(_metric_tasks(file, config, kube, pipeline, watcher), metrics),
            running({} if controller is None else {"autoscaler": controller.run}, metrics) as stop_controller,
        ):
            if not components.adapter:
                await environment.stop.wait()
                return
            async with _serving(config, kube, telemetry, sources) as server:
                await environment.stop.wait()
                _log.info("stopping")
                stop_controller()  # release the lease first: another process leads while this one drains its requests
                await server.begin_shutdown()


def _metric_tasks(
    file: ConfigFile, config: Config, kube: KubeClient, pipeline: MetricPipeline, watcher: ExternalMetricWatcher
) -> dict[str, Run]:
    """Return the tasks that update rules and backends from the configuration file and from objects of the cluster."""
    imported = ImportedRules(pipeline.registry, pipeline.fetcher, config.prometheus_adapter)
    status_writer = ExternalMetricStatusWriter(kube, watcher, pipeline.reader, pipeline.reader.clock)

    async def apply(changed: Config) -> None:
        await pipeline.apply(changed)
        watcher.configure(changed.backends, changed.tenant_limits)
        imported.set_files(changed.prometheus_adapter)

    return {
        "configuration": lambda: file.follow(apply, pipeline.registry.reject_file),
        "imported rules": imported.run,
        "external metrics": watcher.run,
        "status of external metrics": status_writer.run,
    }


@asynccontextmanager
async def _serving(
    config: Config, kube: KubeClient, telemetry: Telemetry, sources: DebugSources
) -> AsyncIterator[Server]:
    """Serve the external metrics API while the context is open.

    Certificates and the access log use the wall clock, because other processes compare them with theirs.
    """
    tls, reader = ServingContext(), sources.reader
    auth = DelegatedAuth(kube, config.auth, clock, telemetry, lambda trusted: tls.use_client_cas(trusted.pem))
    certificate = certificate_source(config.serving.tls, kube, clock)
    server = Server(
        metrics=ExternalMetrics(reader, reader.clock),
        authenticator=auth.authenticator,
        authorizer=auth.authorizer,
        limits=config.limits,
        accounting=RequestAccounting(telemetry, log.line_writer(config.log.format), clock),
        ready={"trust": lambda: auth.trust_store.is_loaded, "serving-certificate": lambda: tls.has_certificate},
        debug=DebugEndpoints(sources, poll_timeout=config.limits.request_timeout * 0.8),
    )
    async with (
        running({"trust": auth.run, "serving certificate": lambda: load_and_refresh(certificate, tls)}, kube.metrics),
        server.serving(config.serving.address, config.serving.port, tls.listener) as port,
    ):
        _log.info("serving", extra={"address": config.serving.address, "port": port})
        yield server
