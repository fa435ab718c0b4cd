"""The scale of every target of a watched kind, without asking for it.

A kind is watched from the first time that somebody asks for a target of it. Kinds that may not be watched, or of which
it is not known where they keep their replicas, are not; whoever asks is told so and has to fetch the scale.
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
from autoscaler.kube.scale_paths import BUILT_IN, SeenScale, built_in_scale, custom_scale, paths_in
from autoscaler.kube.store import Store
from autoscaler.kube.watch import Watched
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.observation import ScaleTarget
from autoscaler.types.record import Record

_PATIENCE: Final = timedelta(seconds=3)
"""How long the first pass over a kind waits for the first list of it, before it fetches the one scale it needs."""

_ASK_AGAIN: Final = timedelta(minutes=5)
"""After how long a kind that could not be watched may have become one that can."""

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class TargetKey(Record):
    """A target, whatever version its kind is served in."""

    group: str
    kind: str
    namespace: str
    name: str


def target_of(autoscaler: Autoscaler) -> TargetKey:
    """Say which target an autoscaler refers to."""
    reference = autoscaler.spec.scale_target_ref
    group, _ = split_api_version(reference.api_version)
    return TargetKey(group, reference.kind, autoscaler.metadata.namespace, reference.name)


class Targets:
    """The watched kinds. Open it with `Targets.open`."""

    def __init__(self, client: KubeClient, tasks: asyncio.TaskGroup) -> None:
        self._client = client
        self._tasks = tasks
        self._watches: list[asyncio.Task[None]] = []
        self._stores: dict[tuple[str, str], Store[SeenScale]] = {}
        self._unwatched: dict[tuple[str, str], float] = {}
        self._opening = asyncio.Lock()
        self._listeners: list[Callable[[TargetKey], None]] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, client: KubeClient) -> AsyncIterator[Self]:
        """Watch for the length of the block."""
        async with asyncio.TaskGroup() as tasks:
            targets = cls(client, tasks)
            try:
                yield targets
            finally:
                for watch in targets._watches:
                    watch.cancel()

    def tell(self, listener: Callable[[TargetKey], None]) -> None:
        """Call `listener` with each watched target that appears, changes or goes."""
        self._listeners.append(listener)

    def size(self, target: TargetKey) -> int | None:
        """Say what a watched target asks for; None: it is not there, not watched, or cannot be understood."""
        store = self._stores.get((target.group, target.kind))
        seen = store.get(f"{target.namespace}/{target.name}") if store is not None else None
        return seen.scale.replicas if seen is not None and isinstance(seen.scale, ScaleTarget) else None

    async def store(self, resource: Resource) -> Store[SeenScale] | None:
        """Give the targets of a kind; None: they are not watched, or not yet."""
        kind = (resource.group, resource.kind)
        store = self._stores.get(kind)
        if store is None and self._may_open(kind):
            async with self._opening:
                store = self._stores.get(kind) or await self._open(resource)
        if store is None or store.is_complete:
            return store
        return store if await store.settled(_PATIENCE) else None

    def _may_open(self, kind: tuple[str, str]) -> bool:
        return asyncio.get_running_loop().time() >= self._unwatched.get(kind, 0)

    async def _open(self, resource: Resource) -> Store[SeenScale] | None:
        kind = (resource.group, resource.kind)
        keep = await self._reader(resource)
        if keep is None:
            self._unwatched[kind] = asyncio.get_running_loop().time() + _ASK_AGAIN.total_seconds()
            return None
        store = Store(self._client, Watched(resource.everywhere), keep)
        store.tell(partial(self._announce, kind))
        self._stores[kind] = store
        self._watches.append(self._tasks.create_task(store.run(), name=f"targets {resource.plural}"))
        return store

    async def _reader(self, resource: Resource) -> Callable[[Json], SeenScale] | None:
        """Say how the scale of such an object is read off it; None: that is not known."""
        if (resource.group, resource.kind) in BUILT_IN:
            return built_in_scale
        if not resource.group:
            return None
        try:
            definition = await self._client.get(f"{_DEFINITIONS}/{resource.plural}.{resource.group}")
        except KubeError:
            return None  # no custom kind, or none of our business: its scale can be fetched all the same
        paths = paths_in(definition, resource.version)
        return None if paths is None else partial(custom_scale, paths=paths)

    def _announce(self, kind: tuple[str, str], key: str) -> None:
        namespace, _, name = key.rpartition("/")
        for listener in self._listeners:
            listener(TargetKey(*kind, namespace, name))
