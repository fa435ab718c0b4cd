"""The composition root: opens everything once, in order, and closes it in the reverse."""

import asyncio
import gc
import logging
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

from adapter import log
from adapter.auth.delegated_auth import Guard, Memories, guard
from adapter.backends.loader import opened
from adapter.config.loading import ConfigFile, Loaded
from adapter.config.model import Config, SelfManagedTls
from adapter.custom_resources.status_writer import StatusKeeper
from adapter.custom_resources.watcher import ExternalMetricObjects
from adapter.debug.decision_log import Shelf
from adapter.errors import ConfigInvalid
from adapter.metrics.imported_rules import Imports
from adapter.metrics.in_process import InProcessMetrics
from adapter.metrics.pipeline import MetricPipeline
from adapter.server.access_log import AccessLog
from adapter.server.accounting import Journal
from adapter.server.debug_endpoints import Debug
from adapter.server.debug_page import Exhibits, Page
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.server import Server
from adapter.telemetry import Telemetry
from adapter.tls.api_service import ApiService
from adapter.tls.authority import Lifetimes
from adapter.tls.context import PairInvalid, ServingContext
from adapter.tls.files import ServingFiles
from adapter.tls.secret import KeySecret
from adapter.tls.self_managed import SelfManaged
from autoscaler.controller.run import Control
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import Connection, connect
from autoscaler.kube.errors import KubeError
from autoscaler.ports import Clock, DecisionListener
from autoscaler.settings import Operation
from autoscaler.telemetry import ControllerTelemetry, StateCollector

_log = logging.getLogger(__name__)
_TRY_AGAIN = 2.0


def clock() -> datetime:
    """Look at the world's clock: the only place that does."""
    return datetime.now(UTC)  # noqa: TID251


def settle() -> None:
    """Tell the garbage collector that what was loaded is here to stay, and that a request leaves little behind.

    Answers hold no cycles worth looking for, and to look for them after every few requests costs an eighth of each.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


class Components(NamedTuple):
    """Which halves of the service run in this process."""

    adapter: bool = True
    operation: Operation | None = None
    """How the autoscaler runs; None: it does not."""


class Environment(NamedTuple):
    """What the service finds outside itself; a demonstration brings a time of its own, and listens.

    Certificates and the access log go by the world's clock in any case: others compare them with theirs.
    """

    stop: asyncio.Event
    clock: Clock = clock
    audience: tuple[DecisionListener, ...] = ()


async def serve(file: ConfigFile, loaded: Loaded, halves: Components) -> None:
    """Serve until a signal says to stop."""
    settle()
    await run(file, loaded, halves, Environment(told_to_stop()))


async def run(file: ConfigFile, loaded: Loaded, halves: Components, around: Environment) -> None:
    """Serve until told to stop, then leave in good order."""
    stop, config, telemetry, shelf = around.stop, loaded.config, Telemetry(), Shelf()
    around = around._replace(audience=(shelf, *around.audience))
    connection = await connect(Path(config.auth.kubeconfig) if config.auth.kubeconfig else None)
    async with KubeClient.open(connection) as kube:
        metrics = _Metrics.of(loaded, kube, around.clock)
        metrics.supply.fetcher.watch = telemetry.fetched
        metrics.supply.reader.sources.snapshots.watch = telemetry.reading("snapshots")
        metrics.supply.reader.sources.cache.watch = telemetry.reading("queries")
        metrics.supply.comparisons.watch = telemetry.compared
        async with aclosing(metrics.supply), asyncio.TaskGroup() as tasks:
            supplying = tasks.create_task(metrics.run(file), name="metrics")
            async with _controlling(halves.operation, connection, metrics, telemetry, around, shelf) as hand_over:
                if halves.adapter:
                    async with _answering(config, kube, telemetry, metrics, shelf) as server:
                        await stop.wait()
                        _log.info("stopping")
                        hand_over()  # at once: another process takes over while this one still answers its callers
                        await server.leave()
                else:
                    await stop.wait()
            supplying.cancel()


@asynccontextmanager
async def _answering(
    config: Config, kube: KubeClient, telemetry: Telemetry, metrics: "_Metrics", shelf: Shelf
) -> AsyncIterator[Server]:
    """Serve the metrics API for the length of the block."""
    tls, door = ServingContext(), guard(kube, clock, _memories(config), telemetry)
    door.trusted.tell(lambda trust: tls.ask_for(trust.authorities))
    debug = _debug(config, metrics, shelf)
    server, source = _server(config, door, tls, telemetry, debug), _source(config, kube)
    async with asyncio.TaskGroup() as tasks:
        kept = [
            tasks.create_task(door.run(), name="trust"),
            tasks.create_task(_certified(source, tls), name="serving certificate"),
        ]
        try:
            async with server.serving(config.serving.address, config.serving.port, tls.listener) as port:
                _log.info("serving", extra={"address": config.serving.address, "port": port})
                yield server
        finally:
            for task in kept:
                task.cancel()


@asynccontextmanager
async def _controlling(
    operation: Operation | None,
    connection: Connection,
    metrics: "_Metrics",
    telemetry: Telemetry,
    around: Environment,
    shelf: Shelf,
) -> AsyncIterator[Callable[[], object]]:
    """Run the autoscaler for the length of the block, or until what this gives is called."""
    if operation is None:
        yield lambda: None
        return
    figures, external = ControllerTelemetry(telemetry.registry), InProcessMetrics(metrics.supply.reader)
    control = Control(connection, external, operation, figures, around.clock, audience=around.audience)
    shelf.leader = lambda: control.leader
    telemetry.registry.register(StateCollector(control.states, around.clock))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(control.run(), name="autoscaler")
        try:
            yield running.cancel
        finally:
            running.cancel()


class _Metrics(NamedTuple):
    """Metrics in: what is read from, and who keeps it as the configuration and the cluster's objects say."""

    supply: MetricPipeline
    objects: ExternalMetricObjects
    statuses: StatusKeeper
    imports: Imports
    clock: Clock

    @classmethod
    def of(cls, loaded: Loaded, kube: KubeClient, clock: Clock) -> Self:
        supply = MetricPipeline(loaded, opened, clock)
        objects = ExternalMetricObjects(kube, supply.book, supply.entries)
        supply.tell(objects.use_backends)
        imports = Imports(supply.book, supply.fetcher, loaded.config.prometheus_adapter)
        return cls(supply, objects, StatusKeeper(kube, objects, supply.reader, clock), imports, clock)

    async def run(self, file: ConfigFile) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(file.follow(self._use, self.supply.refuse), name="configuration")
            tasks.create_task(self.imports.run(), name="imports")
            tasks.create_task(self.objects.run(), name="external metrics")
            tasks.create_task(self.statuses.run(), name="statuses of external metrics")

    async def _use(self, config: Config) -> None:
        await self.supply.use(config)
        self.imports.use(config.prometheus_adapter)


def _debug(config: Config, metrics: "_Metrics", shelf: Shelf) -> Debug:
    """Put together what tells why."""
    reader, objects = metrics.supply.reader, metrics.objects
    exhibits = Exhibits(shelf, reader, lambda: objects.problems, metrics.clock)
    page = Page(exhibits, patience=config.limits.request_timeout * 0.8)
    return Debug(reader, lambda: objects.problems, page, metrics.supply.comparisons)


def _server(config: Config, door: Guard, tls: ServingContext, telemetry: Telemetry, debug: Debug) -> Server:
    """Put the server together out of its parts."""
    return Server(
        metrics=ExternalMetrics(debug.reader, debug.reader.clock),
        authenticator=door.authenticator,
        authorizer=door.authorizer,
        limits=config.limits,
        journal=Journal(telemetry, AccessLog(log.writer(config.log.format), clock)),
        ready={"trust": lambda: door.trusted.is_known, "serving-certificate": lambda: tls.has_certificate},
        debug=debug,
    )


def _memories(config: Config) -> Memories:
    return Memories(config.auth.token_cache_ttl, config.auth.authorized_ttl, config.auth.unauthorized_ttl)


def told_to_stop() -> asyncio.Event:
    """Hear the signals that end a process."""
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    return stop


def _source(config: Config, kube: KubeClient) -> ServingFiles | SelfManaged:
    """Say where the serving certificate comes from."""
    tls = config.serving.tls
    if tls.files is not None:
        return ServingFiles(Path(tls.files.cert_file), Path(tls.files.key_file))
    if tls.self_managed is None:
        raise ConfigInvalid(["serving.tls: one of files and selfManaged is needed"])
    ours = tls.self_managed
    return SelfManaged(
        secret=KeySecret(kube, ours.namespace, ours.secret),
        registration=ApiService(kube, ours.namespace, ours.service),
        names=_names(ours),
        clock=clock,
        lifetimes=Lifetimes(ours.ca_lifetime, ours.certificate_lifetime, ours.overlap),
        every=ours.check_interval,
    )


def _names(tls: SelfManagedTls) -> tuple[str, ...]:
    """List what a Service can be called by; the API server uses the first."""
    short = f"{tls.service}.{tls.namespace}"
    return (f"{short}.svc", short, tls.service, f"{short}.svc.{tls.cluster_domain}", "localhost")


async def _certified(source: ServingFiles | SelfManaged, tls: ServingContext) -> None:
    """Get a certificate, however long it takes, and then keep it; until there is one we are alive and not ready."""
    while not tls.has_certificate:
        try:
            await source.load(tls)
        except (KubeError, PairInvalid) as error:
            _log.warning("no serving certificate yet", extra={"error": str(error)})
            await asyncio.sleep(_TRY_AGAIN)
    await source.keep(tls)
