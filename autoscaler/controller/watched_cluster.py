"""The informers and clients that all controllers of a process share."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from typing import Any, Final, Self

from autoscaler.controller.dependencies import Dependencies
from autoscaler.kube.autoscalers import StatusWriter, hpa_informer, podautoscaler_informer
from autoscaler.kube.client import KubeClient
from autoscaler.kube.discovery import Discovery
from autoscaler.kube.errors import KubeError
from autoscaler.kube.events import EventRecorder
from autoscaler.kube.metrics_apis import MetricsApis
from autoscaler.kube.partial_informer import Accepts, PartialInformer, accept_all
from autoscaler.kube.pods import PodLister
from autoscaler.kube.scale import ScaleClient
from autoscaler.kube.targets import TargetInformers
from autoscaler.kube.tasks import StartTask, background_tasks
from autoscaler.ports import Clock, ExternalMetricsSource
from autoscaler.types.autoscaler import Autoscaler

log = logging.getLogger(__name__)

_SYNC_RETRY: Final = timedelta(seconds=5)


@dataclass(eq=False)
class WatchedCluster:
    """The state of the cluster as far as this process controls it. Open it with `open`."""

    kube: KubeClient
    clock: Clock
    external: ExternalMetricsSource | None
    events: EventRecorder
    autoscalers: PartialInformer[Autoscaler]
    hpas: PartialInformer[Autoscaler]
    targets: TargetInformers
    pods: PodLister
    discovery: Discovery
    _start_task: StartTask
    _is_started: bool = False
    _refreshing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _requested: int = 0
    _refreshed: int = 0
    """The last request for a refresh that was made before the last complete refresh began."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        kube: KubeClient,
        clock: Clock,
        external: ExternalMetricsSource | None,
        instance: str,
        accepts: Accepts = accept_all,
    ) -> AsyncIterator[Self]:
        """Open the informers; only objects of namespaces that ``accepts`` returns True for are stored."""
        events = EventRecorder(kube, clock, instance=instance)
        informers = podautoscaler_informer(kube, accepts), hpa_informer(kube, accepts)
        async with (
            TargetInformers.open(kube, accepts) as targets,
            PodLister.open(kube, accepts) as pods,
            background_tasks(kube.metrics) as start_task,
        ):
            start_task(events.run, "events")
            yield cls(kube, clock, external, events, *informers, targets, pods, Discovery(kube), start_task)

    def dependencies(self, may_write: Callable[[], bool]) -> Dependencies:
        """Return the dependencies of a controller that writes only while ``may_write`` returns True."""
        return Dependencies(
            autoscalers=self.autoscalers,
            hpas=self.hpas,
            targets=self.targets,
            scales=ScaleClient(self.kube, self.discovery, self.targets, may_write),
            pods=self.pods,
            metrics=MetricsApis(self.kube, self.discovery),
            external=self.external,
            statuses=StatusWriter(self.kube, self.autoscalers),
            events=self.events,
            clock=self.clock,
            may_write=may_write,
        )

    async def refresh(self) -> None:
        """Return as soon as the informers contain all accepted objects as of the call or later.

        What was known before a lease was acquired may be outdated, and conflicts must be detected before the first
        rescale. Calls at the same time share one list.
        """
        self._requested += 1
        request = self._requested
        async with self._refreshing:
            while self._refreshed < request:
                covered = self._requested
                if await self._list():
                    self._refreshed = covered

    def remove_unaccepted(self) -> None:
        for informer in self._informers():
            informer.remove_unaccepted()

    async def _list(self) -> bool:
        if not self._is_started:
            self._is_started = True
            self._start_task(self.autoscalers.run, "informer podautoscalers")
            self._start_task(self.hpas.run, "informer horizontalpodautoscalers")
            await _wait_for_sync(self.autoscalers, self.hpas)
            return True
        results = await asyncio.gather(*(one.refresh() for one in self._informers()), return_exceptions=True)
        failures = [result for result in results if result is not None]
        for failure in failures:
            if not isinstance(failure, KubeError):
                raise failure
            log.warning("waiting for a list of the cluster", extra={"error": str(failure)})
        if failures:
            await asyncio.sleep(1)
        return not failures

    def _informers(self) -> "chain[PartialInformer[Any]]":
        return chain((self.autoscalers, self.hpas), self.targets.informers, self.pods.informers)


async def _wait_for_sync(*informers: PartialInformer[Autoscaler]) -> None:
    for informer in informers:
        while not await informer.wait_for_sync(_SYNC_RETRY):
            log.warning("waiting for informer to sync", extra={"error": informer.problem or "no response yet"})
            await asyncio.sleep(_SYNC_RETRY.total_seconds())
