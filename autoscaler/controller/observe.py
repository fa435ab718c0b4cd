"""Gathers the facts of one pass, side by side and under one deadline; what cannot be had is a value among them.

Where targets and pods are watched and metrics come from this process, nothing here waits and nothing is sent.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from autoscaler import readings
from autoscaler.algorithm.conditions import SCALED_TO_ZERO
from autoscaler.algorithm.zero import Ask, choose_route
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.owners import Owners
from autoscaler.controller.reconcile_plan import ClusterRead, ExternalRead, Plan, Read
from autoscaler.controller.selectors import Selectors, parsed
from autoscaler.kube.client_go_messages import in_words
from autoscaler.kube.errors import KubeError
from autoscaler.readings import MetricsApi
from autoscaler.settings import FeatureGates
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.observation import (
    FailureClass,
    Observation,
    Pod,
    Reading,
    ScaleTarget,
    TargetUnreadable,
)
from autoscaler.types.spec import EXTERNAL
from autoscaler.types.status import TRUE
from autoscaler.values.selector import Selector, SelectorError

DEADLINE: Final = timedelta(seconds=10)
"""For all facts of a pass together; the next one comes after fifteen seconds."""

_TARGET_SHARE: Final = 0.5
"""How much of that the target may take, so that a metric has a chance."""

_LATE: Final = "no answer in time"


class Observer:
    """Looks at the world on behalf of one autoscaler at a time."""

    def __init__(self, world: Dependencies, gates: FeatureGates, deadline: timedelta = DEADLINE) -> None:
        self.owners = Owners()
        self.selectors = Selectors()
        self._world = world
        self._gates = gates
        self._deadline = deadline.total_seconds()

    async def observe(self, key: str, autoscaler: Autoscaler, plan: Plan) -> Observation:
        """See what is true now."""
        began = asyncio.get_running_loop().time()
        target = await self._target(autoscaler, began + self._deadline * _TARGET_SHARE)
        rivals = self.owners.rivals(key)
        if isinstance(target, TargetUnreadable) or not self._asks_metrics(autoscaler, target):
            return Observation(target, rivals=rivals)
        try:
            selector = parsed(target.selector)
        except SelectorError as error:
            return Observation(replace(target, selector_error=str(error)), rivals=rivals)
        if not target.selector:
            return Observation(target, rivals=rivals)
        self.selectors.note(key, selector)
        return await self._whole(key, autoscaler, plan, target, rivals, began + self._deadline)

    def forget(self, key: str) -> None:
        """Forget an autoscaler that is gone."""
        selector = self.selectors.forget(key)
        if selector is not None:
            self._world.pods.forget(key.partition("/")[0], selector)

    async def _target(self, autoscaler: Autoscaler, by: float) -> ScaleTarget | TargetUnreadable:
        try:
            async with asyncio.timeout_at(by):
                return await self._world.scales.read(autoscaler)
        except TimeoutError:
            return TargetUnreadable(_LATE)

    def _asks_metrics(self, autoscaler: Autoscaler, target: ScaleTarget) -> bool:
        """Tell whether the pass will get as far as asking metrics; there is no use in reading them otherwise."""
        zero = autoscaler.status.condition(SCALED_TO_ZERO)
        zeroed_by_us = self._gates.HPAScaleToZero and zero is not None and zero.status == TRUE
        return isinstance(choose_route(autoscaler.spec, target.replicas, zeroed_by_us=zeroed_by_us), Ask)

    async def _whole(
        self, key: str, autoscaler: Autoscaler, plan: Plan, target: ScaleTarget, rivals: tuple[str, ...], by: float
    ) -> Observation:
        namespace, selector = autoscaler.metadata.namespace, parsed(target.selector)
        asked = [self._read(namespace, read, selector, by) for read in plan.reads]
        if not (plan.needs_pods or self.selectors.may_overlap(key)):
            return Observation(target, (), await _together(asked), rivals=rivals)
        pods, answers = await asyncio.gather(self._pods(namespace, selector, by), _together(asked))
        if isinstance(pods, TargetUnreadable):
            # Without its pods nothing can be said of a target. If only a doubt was to be cleared up, go on with it.
            return Observation(pods if plan.needs_pods else target, (), answers, rivals=rivals)
        return Observation(target, pods, answers, self.selectors.who_selects(namespace, pods), rivals)

    async def _pods(self, namespace: str, selector: Selector, by: float) -> tuple[Pod, ...] | TargetUnreadable:
        try:
            async with asyncio.timeout_at(by):
                return await self._world.pods.of(namespace, selector)
        except TimeoutError:
            return TargetUnreadable(f"unable to get its pods: {_LATE}")
        except KubeError as error:
            return TargetUnreadable(f"unable to get its pods: {in_words(error, 'get pods')}")

    async def _read(self, namespace: str, read: Read, pods: Selector, by: float) -> Reading:
        try:
            async with asyncio.timeout_at(by):
                match read:
                    case ExternalRead() if self._world.external is not None:
                        return await self._world.external.read(namespace, read.metric, read.selector)
                    case ExternalRead():
                        return await self._world.metrics.external(namespace, read.asked)
                    case ClusterRead():
                        return await self._world.metrics.read(namespace, read.metric, pods)
                    case bad_selector:
                        return bad_selector
        except TimeoutError:
            return readings.failed(_api_of(read), _LATE, FailureClass.TIMED_OUT)


async def _together(asked: Sequence[Awaitable[Reading]]) -> tuple[Reading, ...]:
    """Wait for all at once; for a single one that needs no task of its own."""
    if len(asked) == 1:
        return (await asked[0],)
    return tuple(await asyncio.gather(*asked))


def _api_of(read: Read) -> MetricsApi:
    if isinstance(read, ClusterRead) and (read.metric.pods is not None or read.metric.object is not None):
        return MetricsApi.CUSTOM
    is_external = not isinstance(read, ClusterRead) or read.metric.type == EXTERNAL
    return MetricsApi.EXTERNAL if is_external else MetricsApi.RESOURCE
