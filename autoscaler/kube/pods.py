"""Lists pods from informers: one informer per namespace in which a metric needs pods.

A pod is stored as a dozen values instead of the ten kilobytes that the API server sends. If many namespaces are
needed, one informer for the whole cluster replaces those of the namespaces.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, NamedTuple, Self

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import Unavailable
from autoscaler.kube.partial_informer import Accepts, PartialInformer, accept_all
from autoscaler.kube.paths import api_path
from autoscaler.kube.tasks import StartTask, background_tasks
from autoscaler.kube.watch import ListWatch
from autoscaler.types.observation import Container, Pod
from autoscaler.types.status import condition_of
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import Selector
from autoscaler.values.timestamps import parse_rfc3339

_SYNC_TIMEOUT: Final = timedelta(seconds=5)
_MAX_NAMESPACE_INFORMERS: Final = 16
"""If another namespace is needed beyond these, one informer for the whole cluster replaces them."""

_MAX_LABELS: Final = 256
"""A pod with more labels is invalid: the labels of all pods are kept in memory."""


class _PodIndex:
    """An informer for pods with an index by namespace."""

    def __init__(self, client: KubeClient, path: str, accepts: Accepts) -> None:
        self.informer = PartialInformer(client, ListWatch(path), decode_pod, accepts)
        self.pods: dict[str, dict[str, Pod]] = defaultdict(dict)
        self.changes: dict[str, int] = defaultdict(int)
        """Number of changes by namespace; invalidates cached results."""
        self.informer.add_listener(self._update)

    def _update(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        pod = self.informer.get(key)
        self.changes[namespace] += 1
        if pod is None:
            self.pods[namespace].pop(name, None)
        else:
            self.pods[namespace][name] = pod


class _CachedPods(NamedTuple):
    source: _PodIndex
    changes: int
    pods: tuple[Pod, ...]


class PodLister:
    """Lists pods by namespace and selector. Open it with `PodLister.open`."""

    def __init__(self, client: KubeClient, start_task: StartTask, accepts: Accepts) -> None:
        self._client = client
        self._start_task = start_task
        self._accepts = accepts
        self._cluster: _PodIndex | None = None
        self._namespaces: dict[str, _PodIndex] = {}
        self._running: list[asyncio.Task[None]] = []
        self._cache: dict[tuple[str, Selector], _CachedPods] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls, client: KubeClient, accepts: Accepts = accept_all) -> AsyncIterator[Self]:
        """Open the lister; only pods in namespaces that ``accepts`` returns True for are stored."""
        async with background_tasks(client.metrics) as start_task:
            yield cls(client, start_task, accepts)

    @property
    def informers(self) -> tuple[PartialInformer[Pod], ...]:
        indexes = self._namespaces.values() if self._cluster is None else (self._cluster,)
        return tuple(index.informer for index in indexes)

    async def list(self, namespace: str, selector: Selector) -> tuple[Pod, ...]:
        """Return the pods of a namespace that match a selector; raise a KubeError if they are unknown."""
        index = self._index(namespace)
        if not index.informer.is_synced and not await index.informer.wait_for_sync(_SYNC_TIMEOUT):
            problem = index.informer.problem or "timed out waiting for the list of pods"
            raise index.informer.error or Unavailable(problem)
        return self._matching(index, namespace, selector)

    def list_now(self, namespace: str, selector: Selector) -> tuple[Pod, ...] | None:
        """Return the pods as `list` does; None if `list` would have to wait for the informer."""
        index = self._index(namespace)
        return self._matching(index, namespace, selector) if index.informer.is_synced else None

    def _matching(self, index: _PodIndex, namespace: str, selector: Selector) -> tuple[Pod, ...]:
        changes = index.changes[namespace]
        cached = self._cache.get((namespace, selector))
        if cached is not None and cached.source is index and cached.changes == changes:
            return cached.pods
        pods = tuple(pod for pod in index.pods[namespace].values() if selector.matches(pod.labels))
        self._cache[namespace, selector] = _CachedPods(index, changes, pods)
        return pods

    def discard(self, namespace: str, selector: Selector) -> None:
        """Remove the cached result of a selector that is no longer used."""
        self._cache.pop((namespace, selector), None)

    def _index(self, namespace: str) -> _PodIndex:
        if self._cluster is not None:
            return self._cluster
        if namespace not in self._namespaces and len(self._namespaces) >= _MAX_NAMESPACE_INFORMERS:
            for task in self._running:
                task.cancel()
            self._namespaces.clear()
            self._cluster = self._start("/api/v1/pods")
            return self._cluster
        if namespace not in self._namespaces:
            self._namespaces[namespace] = self._start(api_path("api", "v1", "namespaces", namespace, "pods"))
        return self._namespaces[namespace]

    def _start(self, path: str) -> _PodIndex:
        index = _PodIndex(self._client, path, self._accepts)
        self._running.append(self._start_task(index.informer.run, "informer pods"))
        return index


def decode_pod(content: Json) -> Pod:
    """Decode name, phase, labels, requests and readiness of a pod."""
    metadata, spec, status = content["metadata"], content.get("spec") or {}, content.get("status") or {}
    labels = metadata.get("labels") or {}
    if len(labels) > _MAX_LABELS:
        raise ValueError(f"the pod has {len(labels)} labels, at most {_MAX_LABELS} are supported")
    ready = condition_of(status, "Ready")
    requests = (spec.get("resources") or {}).get("requests")
    return Pod(
        name=metadata["name"],
        phase=status.get("phase", ""),
        labels=labels,
        containers=_containers(spec.get("containers")),
        init_containers=_containers(spec.get("initContainers")),
        requests=_quantities(requests) if requests else None,
        overhead=_quantities(spec["overhead"]) if spec.get("overhead") else None,
        ready=ready.get("status") if ready else None,
        ready_since=parse_rfc3339(ready.get("lastTransitionTime")) if ready else None,
        started=parse_rfc3339(status.get("startTime")),
        terminating="deletionTimestamp" in metadata,
    )


def _containers(containers: list[Json] | None) -> tuple[Container, ...]:
    return tuple(
        Container(
            entry["name"], _quantities((entry.get("resources") or {}).get("requests")), entry.get("restartPolicy")
        )
        for entry in containers or ()
    )


def _quantities(quantities: Mapping[str, Any] | None) -> dict[str, Quantity]:
    return {name: Quantity.parse(str(text)) for name, text in (quantities or {}).items()}
