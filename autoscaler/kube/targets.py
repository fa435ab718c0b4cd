"""Informers for the target kinds, from which scales are read without requests.

A kind is watched from the first time a target of it is read. A kind without permission to watch, or without known
scale paths, is not watched; its scales are fetched from the scale subresource instead.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Final, Self

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.discovery import Resource, split_api_version
from autoscaler.kube.errors import KubeError
from autoscaler.kube.objects import decode_response
from autoscaler.kube.partial_informer import Accepts, PartialInformer, accept_all
from autoscaler.kube.paths import api_path
from autoscaler.kube.scale_paths import BUILT_IN, ObservedScale, built_in_scale, custom_scale, scale_paths_of
from autoscaler.kube.tasks import StartTask, background_tasks
from autoscaler.kube.watch import ListWatch
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.observation import ScaleTarget
from autoscaler.types.record import Record

_SYNC_TIMEOUT: Final = timedelta(seconds=3)
"""How long the first reconcile of a kind waits for its informer before it fetches the one scale that it needs."""

_RETRY_INTERVAL: Final = timedelta(minutes=5)
"""How long a kind that cannot be watched is not tried again."""

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class TargetKey(Record):
    """Identifies a target independently of the API version of its kind."""

    group: str
    kind: str
    namespace: str
    name: str


def target_of(autoscaler: Autoscaler) -> TargetKey:
    reference = autoscaler.spec.scale_target_ref
    group, _ = split_api_version(reference.api_version)
    return TargetKey(group, reference.kind, autoscaler.metadata.namespace, reference.name)


class TargetInformers:
    """The informers of the watched kinds. Open it with `TargetInformers.open`."""

    def __init__(self, client: KubeClient, start_task: StartTask, accepts: Accepts) -> None:
        self._client = client
        self._start_task = start_task
        self._accepts = accepts
        self._informers: dict[tuple[str, str], PartialInformer[ObservedScale]] = {}
        self._retry_at: dict[tuple[str, str], float] = {}
        """When to try again to watch a kind that could not be watched."""
        self._starting = asyncio.Lock()
        self._listeners: list[Callable[[TargetKey], None]] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, client: KubeClient, accepts: Accepts = accept_all) -> AsyncIterator[Self]:
        """Open the informers; only targets in namespaces that ``accepts`` returns True for are stored."""
        async with background_tasks(client.metrics) as start_task:
            yield cls(client, start_task, accepts)

    @property
    def informers(self) -> tuple[PartialInformer[ObservedScale], ...]:
        return tuple(self._informers.values())

    def add_listener(self, listener: Callable[[TargetKey], None]) -> Callable[[], None]:
        """Call ``listener`` with each watched target that is added, changed or deleted.

        Returns the function that removes the listener.
        """
        self._listeners.append(listener)
        return partial(self._listeners.remove, listener)

    def replicas(self, target: TargetKey) -> int | None:
        """Return spec.replicas of a watched target; None if it does not exist, is not watched or is malformed."""
        informer = self._informers.get((target.group, target.kind))
        observed = informer.get(f"{target.namespace}/{target.name}") if informer is not None else None
        return observed.scale.replicas if observed is not None and isinstance(observed.scale, ScaleTarget) else None

    def synced_informer(self, resource: Resource) -> PartialInformer[ObservedScale] | None:
        """Return the informer of a kind if it is synced; None if `informer` would have to wait, or there is none."""
        informer = self._informers.get((resource.group, resource.kind))
        return informer if informer is not None and informer.is_synced else None

    async def informer(self, resource: Resource) -> PartialInformer[ObservedScale] | None:
        """Return the synced informer of a kind, started if necessary; None if there is none."""
        kind = (resource.group, resource.kind)
        informer = self._informers.get(kind)
        if informer is None and asyncio.get_running_loop().time() >= self._retry_at.get(kind, 0):
            async with self._starting:
                informer = self._informers.get(kind) or await self._start(resource)
        if informer is None or informer.is_synced:
            return informer
        return informer if await informer.wait_for_sync(_SYNC_TIMEOUT) else None

    async def _start(self, resource: Resource) -> PartialInformer[ObservedScale] | None:
        kind = (resource.group, resource.kind)
        transform = await self._scale_transform(resource)
        if transform is None:
            self._retry_at[kind] = asyncio.get_running_loop().time() + _RETRY_INTERVAL.total_seconds()
            return None
        informer = PartialInformer(self._client, ListWatch(resource.collection), transform, self._accepts)
        informer.add_listener(partial(self._notify, kind))
        self._informers[kind] = informer
        self._start_task(informer.run, f"informer {resource.plural}")
        return informer

    async def _scale_transform(self, resource: Resource) -> Callable[[Json], ObservedScale] | None:
        """Return the function that derives the scale from an object of the kind; None if its paths are unknown."""
        if (resource.group, resource.kind) in BUILT_IN:
            return built_in_scale
        if not resource.group:
            return None
        try:
            definition = await self._client.get(f"{_DEFINITIONS}{api_path(f'{resource.plural}.{resource.group}')}")
            paths = decode_response("CustomResourceDefinition", scale_paths_of, definition, resource.version)
        except KubeError:
            return None  # not a custom resource, or no permission to read its definition: the scale is fetched
        return None if paths is None else partial(custom_scale, paths=paths)

    def _notify(self, kind: tuple[str, str], key: str) -> None:
        namespace, _, name = key.rpartition("/")
        for listener in tuple(self._listeners):
            listener(TargetKey(*kind, namespace, name))
