"""Starts the controller: opens what it needs, waits to lead, controls, and hands over when told to stop."""

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from autoscaler.controller.controller import Controller
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.reporting import state_of
from autoscaler.kube.autoscalers import StatusWriter, watch_native, watch_podautoscalers
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import Connection
from autoscaler.kube.discovery import Discovery
from autoscaler.kube.events import EventRecorder
from autoscaler.kube.lease import LeadershipLost, Lease, LeaseTimes
from autoscaler.kube.metrics_apis import MetricsApis
from autoscaler.kube.pods import Pods
from autoscaler.kube.scale import ScaleClient
from autoscaler.kube.store import Store
from autoscaler.kube.targets import Targets
from autoscaler.ports import Clock, DecisionListener, ExternalMetrics
from autoscaler.settings import EMBEDDED, Operation
from autoscaler.telemetry import AutoscalerState, ControllerTelemetry
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision

log = logging.getLogger(__name__)

_PATIENCE: Final = timedelta(seconds=5)


@dataclass
class Control:
    """The controller of one process: whether it leads, and what it last decided."""

    connection: Connection
    external: ExternalMetrics
    operation: Operation
    telemetry: ControllerTelemetry
    clock: Clock
    identity: str = ""
    audience: Sequence[DecisionListener] = ()
    """Who is told of every decision that is made here."""

    _controller: Controller | None = None
    _election: Lease | None = None

    @property
    def is_leading(self) -> bool:
        """Tell whether this process controls."""
        return self._controller is not None

    @property
    def leader(self) -> str:
        """Say who controls, as far as was seen; empty: nobody knows, or nobody is elected."""
        return "" if self._election is None else self._election.holder

    def decisions(self) -> dict[str, Decision]:
        """Give the last decision of each autoscaler, by key; none where another process controls."""
        return {} if self._controller is None else self._controller.reconciler.memory.decisions()

    def states(self) -> Iterable[AutoscalerState]:
        """Say what is to be said of each autoscaler when someone looks."""
        return [state_of(key, decision) for key, decision in self.decisions().items()]

    async def run(self) -> None:
        """Control whenever this process leads, until cancelled; then hand over."""
        async with AsyncExitStack() as stack:
            kube = await stack.enter_async_context(KubeClient.open(self.connection))
            autoscalers, native = watch_podautoscalers(kube), watch_native(kube)
            await stack.enter_async_context(_running(autoscalers, native))
            if not self.operation.leader_elect:
                await self._lead(kube, autoscalers, native, lambda: True)
                return
            # Renewals have a session of their own, so that they never wait behind anything else.
            lease = self._election = self._lease(await stack.enter_async_context(KubeClient.open(self.connection)))
            while True:
                try:
                    await lease.lead(lambda: self._lead(kube, autoscalers, native, lambda: lease.is_held))
                except LeadershipLost as error:
                    log.warning("leadership lost", extra={"why": str(error)})

    def _lease(self, kube: KubeClient) -> Lease:
        given = self.operation
        return Lease(
            kube,
            namespace=given.lease_namespace,
            name=given.lease_name,
            identity=self.identity or f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}",
            clock=self.clock,
            times=LeaseTimes(given.lease_duration, given.renew_deadline, given.retry_period),
        )

    async def _lead(
        self,
        kube: KubeClient,
        autoscalers: Store[Autoscaler],
        native: Store[Autoscaler],
        may_write: Callable[[], bool],
    ) -> None:
        """Control for one term; everything that was learned in it is forgotten with it."""
        events = EventRecorder(kube, self.clock, instance=self.identity)
        async with Targets.open(kube) as targets, Pods.open(kube) as pods, _running(events):
            discovery = Discovery(kube)
            world = Dependencies(
                autoscalers=autoscalers,
                native=native,
                targets=targets,
                scales=ScaleClient(kube, discovery, targets),
                pods=pods,
                metrics=MetricsApis(kube, discovery),
                external=self.external if self.operation.external_metrics == EMBEDDED else None,
                statuses=StatusWriter(kube, autoscalers),
                events=events,
                clock=self.clock,
                may_write=may_write,
            )
            await _complete(autoscalers, native)
            await self._control(world)

    async def _control(self, world: Dependencies) -> None:
        given = self.operation
        controller = Controller(
            world,
            given.settings,
            given.gates,
            self.telemetry,
            syncs=given.concurrent_syncs,
            audience=self.audience,
        )
        self._controller = controller
        self.telemetry.leading.set(1)
        try:
            await controller.run()
        finally:
            self._controller = None
            self.telemetry.leading.set(0)
            for one in self.audience:
                one.dismissed()


async def _complete(*stores: Store[Autoscaler]) -> None:
    """Wait until all autoscalers are known: who else owns a target must be known before it is scaled."""
    for store in stores:
        while not await store.settled(_PATIENCE):
            log.warning("waiting for a list", extra={"error": str(store.trouble or "no answer yet")})
            await asyncio.sleep(_PATIENCE.total_seconds())


@asynccontextmanager
async def _running(*parts: "Store[Autoscaler] | EventRecorder") -> AsyncIterator[None]:
    """Let parts run for the length of the block."""
    async with asyncio.TaskGroup() as tasks:
        started = [tasks.create_task(part.run()) for part in parts]
        try:
            yield
        finally:
            for task in started:
                task.cancel()
