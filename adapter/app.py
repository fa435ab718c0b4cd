"""The composition root: constructs the service, runs it, and closes its resources in reverse order."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from socket import socket
from typing import NamedTuple

from adapter import log
from adapter.auth.delegated_auth import DelegatedAuth
from adapter.backends.loader import create_backend
from adapter.config.loading import ConfigFile, Loaded
from adapter.config.model import Config
from adapter.custom_resources.status_writer import ExternalMetricStatusWriter
from adapter.custom_resources.watcher import ExternalMetricWatcher
from adapter.debug.decision_log import DecisionLog
from adapter.history.service import DecisionHistoryService
from adapter.metrics.imported_rules import ImportedRules
from adapter.metrics.in_process import InProcessMetrics
from adapter.metrics.pipeline import MetricPipeline
from adapter.metrics.reader import MetricReader
from adapter.process import ProcessClock, align_clock, keep_aligned, running, stop_event, tune_garbage_collector
from adapter.process import clock as wall_clock
from adapter.server.accounting import RequestAccounting
from adapter.server.debug_endpoints import DebugEndpoints, DebugSources
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.leader_forwarding import Leadership, leader_forwarding, serving_address
from adapter.server.listener import listen
from adapter.server.server import Server
from adapter.telemetry import Telemetry
from adapter.tls.context import ServingContext
from adapter.tls.source import certificate_source, load_and_refresh
from autoscaler.controller.identity import process_identity
from autoscaler.controller.run import ControllerProcess
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import KubeConnection, connect
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

    namespace: str = "steadyscale"
    """Namespace of the Lease and of the decision history, and by default of the serving certificate."""


class Environment(NamedTuple):
    """Inputs of the service that the demonstration and tests replace."""

    stop: asyncio.Event
    clock: Clock | None = None
    """None: the clock of the process, aligned with that of the API server."""

    listeners: tuple[DecisionListener, ...] = ()
    listening: socket | None = None
    """None: a socket with the address and port of the configuration."""


async def serve(file: ConfigFile, loaded: Loaded, components: Components) -> None:
    """Run the service until SIGTERM or SIGINT."""
    tune_garbage_collector()
    await run(file, loaded, components, Environment(stop_event()))


async def run(file: ConfigFile, loaded: Loaded, components: Components, environment: Environment) -> None:
    """Run the service until ``environment.stop`` is set, then shut it down."""
    config, telemetry, decision_log = loaded.config, Telemetry(), DecisionLog()
    connection = await connect(Path(config.auth.kubeconfig) if config.auth.kubeconfig else None)
    metrics, process_clock = KubeMetrics(telemetry.registry), _process_clock(telemetry)
    await align_clock(clock := environment.clock or process_clock, connection, attempts=1)
    address, namespace = serving_address(config.serving.port) if components.adapter else "", components.namespace
    identity = process_identity(address)
    async with KubeClient.open(connection, metrics) as kube:
        pipeline = MetricPipeline(loaded, create_backend, clock, telemetry)
        watcher = ExternalMetricWatcher(
            kube, pipeline.registry, config.backends, config.tenant_limits, telemetry.count_rejection
        )
        history = DecisionHistoryService(kube, namespace, config.decision_history, clock, identity, telemetry.registry)
        listeners = (decision_log, *history.listeners, *environment.listeners)
        controller = _controller(components, connection, pipeline.reader, telemetry, metrics, identity, listeners)
        leadership = Leadership(address, controller)
        tasks = {"clock": lambda: keep_aligned(clock, connection), "decision history": history.writer.run}
        async with (
            leader_forwarding(leadership, kube, connection) as forwarding,
            aclosing(pipeline),
            running(_metric_tasks(file, config, kube, pipeline, watcher) | tasks, metrics),
            running(_controller_task(controller), metrics) as stop_controller,
        ):
            if not components.adapter:
                await environment.stop.wait()
                return
            sources = DebugSources(
                decision_log,
                pipeline.reader,
                lambda: watcher.problems,
                clock,
                leadership.identity,
                pipeline.comparisons,
                history,
                forwarding,
                components.autoscaler or ControllerOptions(),
            )
            listening = environment.listening or listen(config.serving.address, config.serving.port)
            async with _serving(config, namespace, kube, telemetry, sources, process_clock, listening) as server:
                await environment.stop.wait()
                _log.info("stopping")
                stop_controller()  # release the lease first: another process leads while this one drains its requests
                await server.begin_shutdown()


def _process_clock(telemetry: Telemetry) -> ProcessClock:
    created = ProcessClock(on_jump=telemetry.clock_jumps.inc)
    telemetry.clock_offset.set_function(created.offset_seconds)
    return created


def _controller(
    components: Components,
    connection: KubeConnection,
    reader: MetricReader,
    telemetry: Telemetry,
    metrics: KubeMetrics,
    identity: str,
    listeners: tuple[DecisionListener, ...],
) -> ControllerProcess | None:
    """Create the controller if it runs here, with the clock of the reader, and register the metrics of autoscalers."""
    if components.autoscaler is None:
        return None
    created = ControllerProcess(
        connection,
        InProcessMetrics(reader),
        components.autoscaler,
        ControllerTelemetry(telemetry.registry),
        reader.clock,
        identity,
        listeners,
        metrics=metrics,
    )
    telemetry.registry.register(StateCollector(created.states, reader.clock))
    return created


def _controller_task(controller: ControllerProcess | None) -> dict[str, Run]:
    if controller is None:
        return {}

    async def run() -> None:
        await align_clock(controller.clock, controller.connection, attempts=30)
        await controller.run()

    return {"autoscaler": run}


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
    config: Config,
    namespace: str,
    kube: KubeClient,
    telemetry: Telemetry,
    sources: DebugSources,
    clock: Clock,
    listening: socket,
) -> AsyncIterator[Server]:
    """Serve the external metrics API while the context is open.

    ``clock`` is for certificates: unlike that of the reader, it never runs faster than those of other processes.
    """
    tls, reader = ServingContext(), sources.reader
    auth = DelegatedAuth(kube, config.auth, clock, telemetry, lambda trusted: tls.use_client_cas(trusted.pem))
    certificate = certificate_source(config.serving.tls, namespace, kube, clock)
    server = Server(
        metrics=ExternalMetrics(reader, reader.clock),
        authenticator=auth.authenticator,
        authorizer=auth.authorizer,
        limits=config.limits,
        accounting=RequestAccounting(telemetry, log.line_writer(config.log.format), wall_clock),
        ready={"trust": lambda: auth.trust_store.is_loaded, "serving-certificate": lambda: tls.has_certificate},
        debug=DebugEndpoints(sources, poll_timeout=config.limits.request_timeout * 0.8),
    )
    async with (
        running({"trust": auth.run, "serving certificate": lambda: load_and_refresh(certificate, tls)}, kube.metrics),
        server.serving(listening, tls.listener) as port,
    ):
        _log.info("serving", extra={"address": config.serving.address, "port": port})
        yield server
