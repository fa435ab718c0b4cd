"""Runs the controller: informers, leader election, one `Controller` per term as leader, hand-over at shutdown."""

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from autoscaler.controller.controller import Controller
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.reporting import state_of
from autoscaler.kube.autoscalers import StatusWriter, hpa_informer, podautoscaler_informer
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import KubeConnection
from autoscaler.kube.discovery import Discovery
from autoscaler.kube.events import EventRecorder
from autoscaler.kube.informer import Informer
from autoscaler.kube.lease import LeaderElector, LeadershipLost
from autoscaler.kube.metrics import KubeMetrics
from autoscaler.kube.metrics_apis import MetricsApis
from autoscaler.kube.pods import PodLister
from autoscaler.kube.scale import ScaleClient
from autoscaler.kube.targets import TargetInformers
from autoscaler.kube.tasks import background_tasks
from autoscaler.ports import Clock, DecisionListener, ExternalMetricsSource
from autoscaler.settings import EMBEDDED, ControllerOptions
from autoscaler.telemetry import AutoscalerState, ControllerTelemetry
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision

log = logging.getLogger(__name__)

_SYNC_RETRY: Final = timedelta(seconds=5)


@dataclass
class ControllerProcess:
    """The controller of this process, which runs while the process is the leader."""

    connection: KubeConnection
    external: ExternalMetricsSource
    options: ControllerOptions
    telemetry: ControllerTelemetry
    clock: Clock
    identity: str = ""
    listeners: Sequence[DecisionListener] = ()
    metrics: KubeMetrics = field(default_factory=KubeMetrics)

    _controller: Controller | None = None
    _elector: LeaderElector | None = None

    @property
    def is_leader(self) -> bool:
        return self._controller is not None

    @property
    def leader(self) -> str:
        """The identity of the observed leader; empty if it is unknown or leader election is disabled."""
        return "" if self._elector is None else self._elector.holder

    def decisions(self) -> dict[str, Decision]:
        """Return the last decision of each autoscaler, by key; empty if this process is not the leader."""
        return {} if self._controller is None else self._controller.reconciler.state.decisions()

    def states(self) -> Iterable[AutoscalerState]:
        return [state_of(key, decision) for key, decision in self.decisions().items()]

    async def run(self) -> None:
        """Run the controller whenever this process is the leader, until cancelled; then release the lease."""
        async with AsyncExitStack() as stack:
            kube = await stack.enter_async_context(KubeClient.open(self.connection, self.metrics))
            if not self.options.leader_elect:
                await self._lead(kube, lambda: True)
                return
            # Renewals have an HTTP session of their own, so that they never queue behind other requests.
            elector_client = await stack.enter_async_context(KubeClient.open(self.connection, self.metrics))
            identity = self.identity or f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
            elector = LeaderElector(elector_client, self.options, identity=identity, clock=self.clock)
            self._elector = elector
            while True:
                try:
                    await elector.run(lambda: self._lead(kube, lambda: elector.is_leader))
                except LeadershipLost as error:
                    log.warning("leadership lost", extra={"reason": str(error)})

    async def _lead(self, kube: KubeClient, may_write: Callable[[], bool]) -> None:
        """Run the controller for one term as leader, with new state.

        The informers are new, too: what was known before the lease was acquired may be outdated.
        """
        autoscalers, hpas = podautoscaler_informer(kube), hpa_informer(kube)
        events = EventRecorder(kube, self.clock, instance=self.identity)
        async with (
            TargetInformers.open(kube) as targets,
            PodLister.open(kube) as pods,
            background_tasks(self.metrics) as start_task,
        ):
            start_task(autoscalers.run, "informer podautoscalers")
            start_task(hpas.run, "informer horizontalpodautoscalers")
            start_task(events.run, "events")
            discovery = Discovery(kube)
            dependencies = Dependencies(
                autoscalers=autoscalers,
                hpas=hpas,
                targets=targets,
                scales=ScaleClient(kube, discovery, targets),
                pods=pods,
                metrics=MetricsApis(kube, discovery),
                external=self.external if self.options.external_metrics == EMBEDDED else None,
                statuses=StatusWriter(kube, autoscalers),
                events=events,
                clock=self.clock,
                may_write=may_write,
            )
            await _wait_for_sync(autoscalers, hpas)
            await self._control(dependencies)

    async def _control(self, dependencies: Dependencies) -> None:
        options = self.options
        self._controller = Controller(
            dependencies,
            options.settings,
            options.gates,
            self.telemetry,
            concurrent_syncs=options.concurrent_syncs,
            listeners=self.listeners,
        )
        self.telemetry.leader.set(1)
        try:
            await self._controller.run()
        finally:
            self._controller = None
            self.telemetry.leader.set(0)
            for listener in self.listeners:
                listener.on_leadership_lost()


async def _wait_for_sync(*informers: Informer[Autoscaler]) -> None:
    """Wait until all autoscalers are known, because conflicts must be detected before the first rescale."""
    for informer in informers:
        while not await informer.wait_for_sync(_SYNC_RETRY):
            log.warning("waiting for informer to sync", extra={"error": informer.problem or "no response yet"})
            await asyncio.sleep(_SYNC_RETRY.total_seconds())
