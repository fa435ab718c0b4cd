"""The control loop: which autoscaler is reconciled when, and how many at once.

Every autoscaler is reconciled once per sync period, and in between when its spec changes, its target is resized by
another client, or a metric that it reads may have changed. It is not reconciled within one sync period of its own
rescale, because upstream's scaling limits assume one reconcile per period. Under overload all keys wait in one queue,
so the effective period grows evenly for all autoscalers; `OverloadMonitor` measures and reports that.

Reconciles that have nothing to wait for run one after the other in turns. One timer starts a turn for all keys that
have become due since the last one. A turn that takes long ends early, so that the event loop can do other work.
"""

import asyncio
import logging
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from autoscaler.controller.apply import NotLeader
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.metric_readers import spread
from autoscaler.controller.observe import Observer
from autoscaler.controller.overload import OverloadMonitor
from autoscaler.controller.owners import HPA, POD_AUTOSCALER
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

_TURN_INTERVAL: Final = 0.05
"""Seconds from one turn to the next that the timer starts. A change starts a turn at once."""

_MAX_TURN: Final = 0.005
"""Seconds after which a turn ends; requests, watches and health checks wait for it."""


class Controller:
    """Reconciles autoscalers while `run` is running."""

    def __init__(
        self,
        dependencies: Dependencies,
        settings: Settings,
        gates: FeatureGates,
        telemetry: ControllerTelemetry,
        *,
        concurrent_syncs: int,
        listeners: Sequence[DecisionListener] = (),
        controls: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Create the controller of the autoscalers whose keys ``controls`` returns True for."""
        self._dependencies = dependencies
        self._controls = controls
        self._sync_period = settings.sync_period
        self._observer = Observer(dependencies, gates)
        self.reconciler = Reconciler(dependencies, self._observer, settings, gates, Reporter(telemetry, listeners))
        self._queue = WorkQueue()
        self._due: dict[str, datetime] = {}
        """When the next regular reconcile of each key is due, to measure its delay."""
        self._workers = WorkerPool(concurrent_syncs, self._reconcile, self._wake)
        self._overload = OverloadMonitor(telemetry, settings.sync_period)
        self._wakeup = asyncio.Event()
        self._turn_started = float("-inf")
        """When the last turn started, in seconds of the event loop."""
        self._target_replicas: dict[TargetKey, int | None] = {}

    async def run(self) -> None:
        """Reconcile until cancelled; when this returns, nothing is written any more."""
        dependencies = self._dependencies
        unsubscribes = [
            dependencies.targets.add_listener(self._on_target_change),
            dependencies.hpas.add_listener(self._on_hpa_change),
            dependencies.autoscalers.add_listener(self._on_autoscaler_change),
        ]
        if dependencies.external is not None:
            unsubscribes.append(dependencies.external.subscribe(self._on_metric_change))
        try:
            while True:
                if self._run_turn():
                    await self._wait()
                else:
                    await asyncio.sleep(0)
        finally:
            for unsubscribe in unsubscribes:
                unsubscribe()
            await self._workers.close()
            await self.reconciler.flush()

    def _run_turn(self) -> bool:
        """Start the due reconciles for which there are workers; return False if the turn ended before that."""
        now, loop = self._dependencies.clock(), asyncio.get_running_loop()
        self._turn_started = loop.time()
        while self._workers.has_capacity and (key := self._queue.take(now)) is not None:
            due = self._due.get(key, now)
            if now < due and self._rescaled_recently(key, now):
                self._queue.add_at(key, due)
                self._queue.done(key)
                continue
            self._due.pop(key, None)
            self._overload.record_delay(now - due, now)
            self._workers.start(key)
            if loop.time() - self._turn_started > _MAX_TURN:
                return False
        self._wakeup.clear()  # what woke the controller during the turn was started
        return True

    async def _wait(self) -> None:
        """Wait until the next turn: until a reconcile is due and the interval has passed, or `_wake` is called."""
        due, at = self._queue.next_due() if self._workers.has_capacity else None, None
        if due is not None:
            now = asyncio.get_running_loop().time()
            due_at = now + (due - self._dependencies.clock()).total_seconds()
            at = max(due_at, self._turn_started + _TURN_INTERVAL)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(at):
                await self._wakeup.wait()

    def _wake(self) -> None:
        self._wakeup.set()

    async def _reconcile(self, key: str) -> None:
        started, delay = self._dependencies.clock(), None
        is_first = key not in self.reconciler.state
        try:
            delay = await self.reconciler.reconcile(key)
        except NotLeader:
            log.info("decision not applied: this process is no longer the leader", extra={"autoscaler": key})
        except Exception:
            log.exception("reconcile failed", extra={"autoscaler": key})
            delay = self._sync_period
        finally:
            self._schedule_next(key, started, delay, is_first=is_first)
            self._queue.done(key)

    def _schedule_next(self, key: str, started: datetime, delay: timedelta | None, *, is_first: bool) -> None:
        """Schedule the next reconcile; after the first one, spread the keys evenly over the sync period."""
        if delay is None:
            self._workers.forget(key)
            return
        if is_first and delay == self._sync_period and not self._rescaled_recently(key, started):
            delay *= _phase(key)
        self._due[key] = started + delay
        self._queue.add_at(key, self._due[key])
        self._wake()

    def _rescaled_recently(self, key: str, now: datetime) -> bool:
        """Return whether an autoscaler has rescaled within the sync period and its spec is unchanged since."""
        state, autoscaler = self.reconciler.state.get(key), self._dependencies.autoscalers.get(key)
        if state is None or state.rescaled_at is None or autoscaler is None or state.pending_status is not None:
            return False
        return now < state.rescaled_at + self._sync_period and self.reconciler.plans.is_current(key, autoscaler)

    def _enqueue(self, key: str) -> None:
        self._queue.add(key)
        self._wake()

    def _on_autoscaler_change(self, key: str) -> None:
        if not self._controls(key):
            return
        autoscaler = self._dependencies.autoscalers.get(key)
        for other in self._observer.owners.update(POD_AUTOSCALER, key, autoscaler):
            self._enqueue(other)
        if autoscaler is None or not self.reconciler.plans.is_current(key, autoscaler):
            self._queue.add_at(key, self._due_after_change(autoscaler))
            self._wake()

    def _due_after_change(self, autoscaler: Autoscaler | None) -> datetime:
        """Return now, or one sync period after a rescale by the previous leader if the spec is unchanged since."""
        now = self._dependencies.clock()
        if autoscaler is None or autoscaler.status.observed_generation != autoscaler.metadata.generation:
            return now
        rescaled_at = min(autoscaler.status.last_scale_time or now - self._sync_period, now)
        return max(now, rescaled_at + self._sync_period)

    def _on_hpa_change(self, key: str) -> None:
        if not self._controls(key):
            return
        for other in self._observer.owners.update(HPA, key, self._dependencies.hpas.get(key)):
            self._enqueue(other)

    def _on_target_change(self, target: TargetKey) -> None:
        """Reconcile if the target was resized by another client, created or deleted; ignore status changes."""
        keys = self._observer.owners.keys(target)
        if not keys:
            self._target_replicas.pop(target, None)
            return
        replicas = self._dependencies.targets.replicas(target)
        if replicas != self._target_replicas.get(target, -1):
            self._target_replicas[target] = replicas
            for key in keys:
                if not self._is_own_rescale(key, replicas):
                    self._enqueue(key)

    def _is_own_rescale(self, key: str, replicas: int | None) -> bool:
        state = self.reconciler.state.get(key)
        return state is not None and state.decision is not None and state.decision.replicas == replicas

    def _on_metric_change(self, changes: Sequence[MetricChange]) -> None:
        """Reconcile the autoscalers that read a changed series, spread over a part of the sync period."""
        readers, now = self.reconciler.plans.readers, self._dependencies.clock()
        keys = {key: None for change in changes for key in readers.concerned(change)}
        for key, delay in spread(keys, self._sync_period):
            self._queue.add_at(key, now + delay)
        self._wake()


def _phase(key: str) -> float:
    """Return the position of a key within the sync period, between 0 and 1; the same in every process."""
    return (zlib.crc32(key.encode()) % 1000 + 1) / 1000
