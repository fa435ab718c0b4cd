"""The loop: which autoscaler is looked at when, and by how many at once.

Every autoscaler is looked at once in a period. In between it is looked at as soon as its spec changes, its target is
resized by somebody else, or a metric that it reads may have changed; but not within one period of having rescaled,
since upstream's limits are limits for each look. When there is more to do than time, everyone waits in one line and the
period becomes longer for all alike, which is measured and told.
"""

import asyncio
import logging
import zlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from autoscaler.controller.act import NotLeader
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.observe import Observer
from autoscaler.controller.overload import Load
from autoscaler.controller.owners import NATIVE, POD_AUTOSCALER
from autoscaler.controller.queue import WorkQueue
from autoscaler.controller.reconcile import Reconciler
from autoscaler.controller.reporting import Reporter
from autoscaler.controller.worker_pool import WorkerPool
from autoscaler.kube.targets import TargetKey
from autoscaler.ports import DecisionListener, MetricChange
from autoscaler.settings import FeatureGates, Settings
from autoscaler.telemetry import ControllerTelemetry
from autoscaler.types.autoscaler import Autoscaler

log = logging.getLogger(__name__)

_SPREAD: Final = timedelta(milliseconds=1)
"""What lies between two visits that one change of a metric asks for: a thousand at once would delay everybody else."""


class Controller:
    """Looks at autoscalers for as long as it runs."""

    def __init__(
        self,
        world: Dependencies,
        settings: Settings,
        gates: FeatureGates,
        telemetry: ControllerTelemetry,
        *,
        syncs: int,
        audience: Sequence[DecisionListener] = (),
    ) -> None:
        self._world = world
        self._period = settings.sync_period
        self._observer = Observer(world, gates)
        self.reconciler = Reconciler(world, self._observer, settings, gates, Reporter(telemetry, audience))
        self._queue = WorkQueue()
        self._due: dict[str, datetime] = {}
        """When each key should be looked at next, to know how late that is."""
        self._lanes = WorkerPool(syncs, self._visit, self._stir)
        self._load = Load(telemetry, settings.sync_period)
        self._stirred = asyncio.Event()
        self._sizes: dict[TargetKey, int | None] = {}

    async def run(self) -> None:
        """Control until cancelled. When this returns, nothing is written any more."""
        world = self._world
        world.targets.tell(self._target_changed)
        stops = [world.native.tell(self._native_changed), world.autoscalers.tell(self._autoscaler_changed)]
        if world.external is not None:
            stops.append(world.external.subscribe(self._metric_changed))
        try:
            while True:
                await self._pause(self.start_due())
        finally:
            for stop in stops:
                stop()
            await self._lanes.close()
            await self.reconciler.leave()

    def start_due(self) -> datetime | None:
        """Begin every visit that is due and has room; say when the next one is due."""
        self._stirred.clear()
        now = self._world.clock()
        while self._lanes.has_room and (key := self._queue.take(now)) is not None:
            due = self._due.get(key, now)
            if now < due and self._is_settling(key, now):
                self._queue.add_at(key, due)
                self._queue.done(key)
                continue
            self._due.pop(key, None)
            self._load.began(now - due, now)
            self._lanes.start(key)
        return self._queue.next_due() if self._lanes.has_room else None

    async def _pause(self, due: datetime | None) -> None:
        """Wait until the next visit is due, or something stirs."""
        wait = None if due is None else max((due - self._world.clock()).total_seconds(), 0.0)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._stirred.wait()

    def _stir(self) -> None:
        self._stirred.set()

    async def _visit(self, key: str) -> None:
        began, wait = self._world.clock(), None
        first = key not in self.reconciler.memory
        try:
            wait = await self.reconciler.reconcile(key)
        except NotLeader:
            log.info("not carried out: no longer leading", extra={"autoscaler": key})
        except Exception:
            log.exception("a pass failed", extra={"autoscaler": key})
            wait = self._period
        finally:
            self._plan_next(key, began, wait, first=first)
            self._queue.done(key)

    def _plan_next(self, key: str, began: datetime, wait: timedelta | None, *, first: bool) -> None:
        """Come again in a period from when this pass began; the first time after a part of it, so that all spread."""
        if wait is None:
            self._lanes.forget(key)
            return
        spreads = first and wait == self._period and not self._is_settling(key, began)
        self._due[key] = began + (wait * _phase(key) if spreads else wait)
        self._queue.add_at(key, self._due[key])
        self._stir()

    def _is_settling(self, key: str, now: datetime) -> bool:
        """Tell whether an autoscaler has just rescaled and was not edited since: what it did should show first."""
        entry, autoscaler = self.reconciler.memory.get(key), self._world.autoscalers.get(key)
        if entry is None or entry.rescaled_at is None or autoscaler is None or entry.unsaid is not None:
            return False
        return now < entry.rescaled_at + self._period and self.reconciler.plans.knows(key, autoscaler)

    def _wake(self, key: str, spread: timedelta = timedelta(0)) -> None:
        """Look at an autoscaler soon."""
        if spread:
            self._queue.add_at(key, self._world.clock() + spread)
        else:
            self._queue.add(key)
        self._stir()

    def _autoscaler_changed(self, key: str) -> None:
        autoscaler = self._world.autoscalers.get(key)
        for rival in self._observer.owners.note(POD_AUTOSCALER, key, autoscaler):
            self._wake(rival)
        if autoscaler is None or not self.reconciler.plans.knows(key, autoscaler):
            self._queue.add_at(key, self._first_look(autoscaler))
            self._stir()

    def _first_look(self, autoscaler: Autoscaler | None) -> datetime:
        """Look at a new spec at once; what another process has just rescaled has a period to settle here as well."""
        now = self._world.clock()
        if autoscaler is None or autoscaler.status.observed_generation != autoscaler.metadata.generation:
            return now
        return max(now, (autoscaler.status.last_scale_time or now - self._period) + self._period)

    def _native_changed(self, key: str) -> None:
        for rival in self._observer.owners.note(NATIVE, key, self._world.native.get(key)):
            self._wake(rival)

    def _target_changed(self, target: TargetKey) -> None:
        """Look again if somebody else resized the target, or if it came or went; its pods coming up are no news."""
        keys = self._observer.owners.keys(target)
        if not keys:
            self._sizes.pop(target, None)
            return
        size = self._world.targets.size(target)
        if size != self._sizes.get(target, -1):
            self._sizes[target] = size
            for key in keys:
                if not self._expects(key, size):
                    self._wake(key)

    def _expects(self, key: str, size: int | None) -> bool:
        """Tell whether an autoscaler has decided on this very size and need not hear of it."""
        entry = self.reconciler.memory.get(key)
        return entry is not None and entry.decision is not None and entry.decision.replicas == size

    def _metric_changed(self, change: MetricChange) -> None:
        for index, key in enumerate(self.reconciler.plans.readers(change.metric, change.namespace)):
            self._wake(key, spread=_SPREAD * index)


def _phase(key: str) -> float:
    """Give a key its place within the period, the same in every process."""
    return (zlib.crc32(key.encode()) % 1000 + 1) / 1000
