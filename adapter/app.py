"""The composition root: opens everything once, in order, and closes it in the reverse."""

import asyncio
import logging
import signal
from datetime import UTC, datetime
from pathlib import Path

from adapter import log
from adapter.api.access_log import AccessLog
from adapter.api.external_metrics import ExternalMetrics
from adapter.api.server import Journal, Server
from adapter.auth.guard import Guard, Memories, guard
from adapter.auth.trust import Trust
from adapter.backends.static import StaticBackend
from adapter.config import Config, SelfManagedTls
from adapter.errors import ConfigInvalid
from adapter.fetch import Fetcher
from adapter.reader import RuleReader, Sources
from adapter.rules.book import RuleBook
from adapter.rules.rule import STATIC
from adapter.telemetry import Telemetry
from adapter.tls.api_service import ApiService
from adapter.tls.authority import Lifetimes
from adapter.tls.context import PairInvalid, ServingContext
from adapter.tls.files import ServingFiles
from adapter.tls.secret import KeySecret
from adapter.tls.self_managed import SelfManaged
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.kube.errors import KubeError

_log = logging.getLogger(__name__)
_TRY_AGAIN = 2.0


def clock() -> datetime:
    """Look at the clock: the only place that does."""
    return datetime.now(UTC)  # noqa: TID251


async def serve(config: Config) -> None:
    """Serve until told to stop, then leave in good order."""
    stop = _told_to_stop()
    async with KubeClient.open(await connect(Path(config.auth.kubeconfig) if config.auth.kubeconfig else None)) as kube:
        tls, telemetry = ServingContext(), Telemetry()
        door = guard(kube, clock, _memories(config), telemetry)
        door.trusted.tell(lambda trust: tls.ask_for(_authorities(trust)))
        server, source = _server(config, door, tls, telemetry), _source(config, kube)
        async with asyncio.TaskGroup() as tasks:
            kept = [
                tasks.create_task(door.run(), name="trust"),
                tasks.create_task(_certified(source, tls), name="serving certificate"),
            ]
            async with server.serving(config.serving.address, config.serving.port, tls.listener) as port:
                _log.info("serving", extra={"address": config.serving.address, "port": port})
                await stop.wait()
                _log.info("stopping")
                await server.leave()
            for task in kept:
                task.cancel()


def _server(config: Config, door: Guard, tls: ServingContext, telemetry: Telemetry) -> Server:
    """Put the server together out of its parts."""
    reader = RuleReader(RuleBook(config.rules), Sources.of(Fetcher({STATIC: StaticBackend(clock)}, clock)), clock)
    return Server(
        metrics=ExternalMetrics(reader, clock),
        authenticator=door.authenticator,
        authorizer=door.authorizer,
        limits=config.limits,
        journal=Journal(telemetry, AccessLog(log.writer(config.log.format), clock)),
        ready={"trust": lambda: door.trusted.is_known, "serving-certificate": lambda: tls.has_certificate},
    )


def _memories(config: Config) -> Memories:
    return Memories(config.auth.token_memory, config.auth.allow_memory, config.auth.deny_memory)


def _told_to_stop() -> asyncio.Event:
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
        lifetimes=Lifetimes(ours.authority_lifetime, ours.certificate_lifetime, ours.overlap),
        every=ours.look_every,
    )


def _names(tls: SelfManagedTls) -> tuple[str, ...]:
    """List what a Service can be called by; the API server uses the first."""
    short = f"{tls.service}.{tls.namespace}"
    return (f"{short}.svc", short, tls.service, f"{short}.svc.{tls.cluster_domain}", "localhost")


async def _certified(source: ServingFiles | SelfManaged, tls: ServingContext) -> None:
    """Get a certificate, however long it takes, and then keep it; until there is one we are alive and not ready."""
    while not tls.has_certificate:
        try:
            await _load(source, tls)
        except (KubeError, PairInvalid) as error:
            _log.warning("no serving certificate yet", extra={"error": str(error)})
            await asyncio.sleep(_TRY_AGAIN)
    await source.keep(tls)


async def _load(source: ServingFiles | SelfManaged, tls: ServingContext) -> None:
    if isinstance(source, ServingFiles):
        source.load(tls)
    else:
        await source.load(tls)


def _authorities(trust: Trust) -> str:
    return f"{trust.front_proxies.pem}\n{trust.clients.pem}"
