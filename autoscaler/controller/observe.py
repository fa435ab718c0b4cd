"""Gathers the observation of one reconcile: target, pods and metric readings, concurrently and with one deadline.

A part that cannot be read is represented by a value, not by an exception. If targets and pods are watched and external
metrics come from this process, no request is sent and nothing is waited for, so there are no tasks and no timers.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from typing import Final, TypeAlias

from msgspec.structs import replace

from autoscaler import readings
from autoscaler.algorithm.zero import EvaluateMetrics, choose_route
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.owners import TargetOwners
from autoscaler.controller.reconcile_plan import ClusterMetricRead, ExternalMetricRead, MetricRead, ReconcilePlan
from autoscaler.controller.selectors import TargetSelectors, parse_cached
from autoscaler.controller.worker_pool import continue_in_task
from autoscaler.kube.errors import KubeError, client_go_message
from autoscaler.readings import MetricsApi
from autoscaler.settings import FeatureGates
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.observation import (
    BadSelector,
    FailureClass,
    Observation,
    Pod,
    Reading,
    ScaleTarget,
    UnavailableTarget,
)
from autoscaler.values.selector import Selector, SelectorError

DEADLINE: Final = timedelta(seconds=10)
"""For the whole observation; shorter than the default sync period of 15 seconds."""

_TARGET_SHARE: Final = 0.5
"""The part of the deadline for reading the target, so that time for the metrics remains."""

_TIMED_OUT: Final = "timed out"

_TimedReading: TypeAlias = tuple[Reading, timedelta]
"""A reading and how long it took."""


class Observer:
    """Gathers observations; holds the owners and pod selectors of all targets."""

    def __init__(self, dependencies: Dependencies, gates: FeatureGates, deadline: timedelta = DEADLINE) -> None:
        self.owners = TargetOwners()
        self.selectors = TargetSelectors()
        self._dependencies = dependencies
        self._gates = gates
        self._deadline = deadline.total_seconds()

    async def observe(self, key: str, autoscaler: Autoscaler, plan: ReconcilePlan) -> Observation:
        """Return the observation of an autoscaler; metrics are read only if the decision evaluates them."""
        started = asyncio.get_running_loop().time()
        target = self._dependencies.scales.read_now(autoscaler)
        if target is None:
            await continue_in_task()
            target = await self._read_target(autoscaler, started + self._deadline * _TARGET_SHARE)
        conflicts = self.owners.conflicts(key)
        if isinstance(target, UnavailableTarget):
            return Observation(target, conflicts=conflicts)
        if not isinstance(choose_route(autoscaler, target.replicas, self._gates), EvaluateMetrics):
            return Observation(target, conflicts=conflicts)
        try:
            selector = parse_cached(target.selector)
        except SelectorError as error:
            return Observation(replace(target, selector_error=str(error)), conflicts=conflicts)
        if not target.selector:
            return Observation(target, conflicts=conflicts)
        self.selectors.update(key, selector)
        deadline = started + self._deadline
        observation = await self._observe_metrics(key, autoscaler, plan, target, selector, deadline)
        return replace(observation, conflicts=conflicts) if conflicts else observation

    def forget(self, key: str) -> None:
        selector = self.selectors.remove(key)
        if selector is not None:
            self._dependencies.pods.discard(key.partition("/")[0], selector)

    async def _read_target(self, autoscaler: Autoscaler, deadline: float) -> ScaleTarget | UnavailableTarget:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._dependencies.scales.read(autoscaler)
        except TimeoutError:
            return UnavailableTarget(_TIMED_OUT)

    async def _observe_metrics(
        self,
        key: str,
        autoscaler: Autoscaler,
        plan: ReconcilePlan,
        target: ScaleTarget,
        selector: Selector,
        deadline: float,
    ) -> Observation:
        namespace = autoscaler.metadata.namespace
        needs_pods = plan.needs_pods or self.selectors.may_overlap(key)
        known_pods = self._dependencies.pods.list_now(namespace, selector) if needs_pods else ()
        at_hand = [self._read_now(namespace, read) for read in plan.reads]
        results = [reading for reading in at_hand if reading is not None]
        pods: tuple[Pod, ...] | UnavailableTarget = known_pods or ()
        if known_pods is None or len(results) < len(at_hand):
            await continue_in_task()
            reading = self._read_missing(namespace, plan, selector, deadline, at_hand)
            if known_pods is None:
                pods, results = await asyncio.gather(self._list_pods(namespace, selector, deadline), reading)
            else:
                results = await reading
        if isinstance(pods, UnavailableTarget):
            # Pods that are only needed to check for overlapping selectors may be missing.
            return _with_readings(Observation(pods if plan.needs_pods else target), results)
        # An autoscaler with mode: DryRun scales no pods, so it does not compete for them.
        selected_by: tuple[str, ...] = ()
        if pods and not self.owners.is_dry_run(key):
            selected_by = self.selectors.selecting_autoscalers(namespace, pods, self.owners.is_dry_run)
        return _with_readings(Observation(target, pods, selected_by=selected_by), results)

    async def _list_pods(
        self, namespace: str, selector: Selector, deadline: float
    ) -> tuple[Pod, ...] | UnavailableTarget:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._dependencies.pods.list(namespace, selector)
        except TimeoutError:
            return UnavailableTarget(f"unable to get its pods: {_TIMED_OUT}")
        except KubeError as error:
            return UnavailableTarget(f"unable to get its pods: {client_go_message(error, 'get pods')}")

    def _read_now(self, namespace: str, read: MetricRead) -> _TimedReading | None:
        """Read a metric without waiting; None if that is not possible."""
        if isinstance(read, BadSelector):
            return read, timedelta(0)
        external = self._dependencies.external
        if external is None or not isinstance(read, ExternalMetricRead):
            return None
        loop = asyncio.get_running_loop()
        started = loop.time()
        reading = external.read_now(namespace, read.identifier.name, read.selector)
        return None if reading is None else (reading, timedelta(seconds=loop.time() - started))

    async def _read_missing(
        self,
        namespace: str,
        plan: ReconcilePlan,
        pods: Selector,
        deadline: float,
        at_hand: Sequence[_TimedReading | None],
    ) -> list[_TimedReading]:
        """Read the metrics that are not at hand, concurrently; a single read is awaited without a task."""
        missing = [read for read, reading in zip(plan.reads, at_hand, strict=True) if reading is None]
        reads = [_timed(self._read_metric(namespace, read, pods, deadline)) for read in missing]
        results = iter([await reads[0]] if len(reads) == 1 else await asyncio.gather(*reads))
        return [next(results) if reading is None else reading for reading in at_hand]

    async def _read_metric(self, namespace: str, read: MetricRead, pods: Selector, deadline: float) -> Reading:
        external, metrics = self._dependencies.external, self._dependencies.metrics
        try:
            async with asyncio.timeout_at(deadline):
                match read:
                    case ExternalMetricRead() if external is not None:
                        return await external.read(namespace, read.identifier.name, read.selector)
                    case ExternalMetricRead():
                        return await metrics.external(namespace, read.identifier)
                    case ClusterMetricRead():
                        return await metrics.read(namespace, read.metric, pods)
                    case bad_selector:
                        return bad_selector
        except TimeoutError:
            return readings.api_failure(_api_of(read), _TIMED_OUT, FailureClass.TIMED_OUT)


async def _timed(read: Awaitable[Reading]) -> _TimedReading:
    loop = asyncio.get_running_loop()
    started = loop.time()
    reading = await read
    return reading, timedelta(seconds=loop.time() - started)


def _with_readings(observation: Observation, timed: Sequence[_TimedReading]) -> Observation:
    results, durations = zip(*timed, strict=True) if timed else ((), ())
    return replace(observation, readings=results, read_durations=durations)


def _api_of(read: MetricRead) -> MetricsApi:
    if not isinstance(read, ClusterMetricRead):
        return MetricsApi.EXTERNAL
    is_custom = read.metric.pods is not None or read.metric.object is not None
    return MetricsApi.CUSTOM if is_custom else MetricsApi.RESOURCE
