"""The pods of a target, out of what is watched: one watch for each namespace where a metric needs pods.

A pod in memory is a dozen values, not the ten kilobytes that the API server sends. Where many namespaces need theirs,
one watch of all pods takes the place of the many.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final, NamedTuple, Self

from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import Unavailable
from autoscaler.kube.pod import decode_pod
from autoscaler.kube.store import Store
from autoscaler.kube.watch import Watched
from autoscaler.types.observation import Pod
from autoscaler.values.selector import Selector

_PATIENCE: Final = timedelta(seconds=5)
_MOST_WATCHES: Final = 16
"""With so many namespaces watched, the next one turns them all into one watch of the cluster."""


class _Watch:
    """Pods of one namespace or of all, sorted by namespace as they arrive."""

    def __init__(self, client: KubeClient, path: str) -> None:
        self.store = Store(client, Watched(path), decode_pod)
        self.pods: dict[str, dict[str, Pod]] = defaultdict(dict)
        self.changes: dict[str, int] = defaultdict(int)
        self.store.tell(self._sort)

    def _sort(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        pod = self.store.get(key)
        self.changes[namespace] += 1
        if pod is None:
            self.pods[namespace].pop(name, None)
        else:
            self.pods[namespace][name] = pod


class _Found(NamedTuple):
    watch: _Watch
    changes: int
    pods: tuple[Pod, ...]


class Pods:
    """The watched pods. Open it with `Pods.open`."""

    def __init__(self, client: KubeClient, tasks: asyncio.TaskGroup) -> None:
        self._client = client
        self._tasks = tasks
        self._everywhere: _Watch | None = None
        self._watches: dict[str, _Watch] = {}
        self._running: list[asyncio.Task[None]] = []
        self._found: dict[tuple[str, Selector], _Found] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls, client: KubeClient) -> AsyncIterator[Self]:
        """Watch for the length of the block."""
        async with asyncio.TaskGroup() as tasks:
            pods = cls(client, tasks)
            try:
                yield pods
            finally:
                pods._stop()

    async def of(self, namespace: str, selector: Selector) -> tuple[Pod, ...]:
        """List the pods of a namespace that a selector matches; a KubeError says why they cannot be known."""
        watch = self._watch(namespace)
        if not watch.store.is_complete and not await watch.store.settled(_PATIENCE):
            raise watch.store.trouble or Unavailable("the pods of this namespace have not been listed yet")
        changes = watch.changes[namespace]
        known = self._found.get((namespace, selector))
        if known is not None and known.watch is watch and known.changes == changes:
            return known.pods
        pods = tuple(pod for pod in watch.pods[namespace].values() if selector.matches(pod.labels))
        self._found[namespace, selector] = _Found(watch, changes, pods)
        return pods

    def forget(self, namespace: str, selector: Selector) -> None:
        """Drop what was found for a selector that nobody will ask for again."""
        self._found.pop((namespace, selector), None)

    def _watch(self, namespace: str) -> _Watch:
        if self._everywhere is not None:
            return self._everywhere
        if namespace not in self._watches and len(self._watches) >= _MOST_WATCHES:
            self._stop()
            self._watches.clear()
            self._everywhere = self._begin("/api/v1/pods")
            return self._everywhere
        if namespace not in self._watches:
            self._watches[namespace] = self._begin(f"/api/v1/namespaces/{namespace}/pods")
        return self._watches[namespace]

    def _begin(self, path: str) -> _Watch:
        watch = _Watch(self._client, path)
        self._running.append(self._tasks.create_task(watch.store.run(), name=f"watch {path}"))
        return watch

    def _stop(self) -> None:
        while self._running:
            self._running.pop().cancel()
