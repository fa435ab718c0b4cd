"""A minimal controller manager and kubelet: pods and status follow the replicas of a workload.

Deployments, StatefulSets and ReplicaSets get running, ready pods and a status that counts them. Other kinds with a
scale subresource get their status replicas set.
"""

from collections.abc import Callable
from datetime import datetime
from itertools import count
from typing import Final

from adapter.fakecluster.kinds import Json, Kind, Kinds, ResourcePath
from adapter.fakecluster.object_writer import ObjectWriter
from adapter.fakecluster.scale import set_field
from adapter.fakecluster.storage import Storage, Write
from autoscaler.kube.scale_paths import value_at
from autoscaler.values.timestamps import format_rfc3339

PODS: Final = Kind("", "v1", "pods", "Pod", has_status=True)


class WorkloadController:
    """Reconciles every object with a scale subresource whenever it changes."""

    def __init__(self, storage: Storage, kinds: Kinds, writer: ObjectWriter, clock: Callable[[], datetime]) -> None:
        self._storage = storage
        self._kinds = kinds
        self._writer = writer
        self._clock = clock
        self._is_paused = False
        self._subscription = storage.subscribe()  # before run(), so that no write is missed
        self.new_pods_are_ready = True

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        """Reconcile all workloads, then continue with changes."""
        self._is_paused = False
        for kind in tuple(self._kinds):
            for workload in self._storage.list(kind.resource):
                self._reconcile(kind, workload)

    async def run(self) -> None:
        while True:
            write = await self._subscription.writes.get()
            if write is not None and not self._is_paused:
                self._on_write(write)

    def _on_write(self, write: Write) -> None:
        kind = next((kind for kind in self._kinds if kind.resource == write.resource), None)
        workload = write.after or write.before
        if kind is None or kind.scale is None or workload is None:
            return
        metadata = workload["metadata"]
        current = self._storage.get(kind.resource, (metadata.get("namespace", ""), metadata["name"]))
        if current is None:
            self._set_pod_count(workload, 0)
        else:
            self._reconcile(kind, current)

    def _reconcile(self, kind: Kind, workload: Json) -> None:
        if kind.scale is None:
            return
        replicas = value_at(workload, kind.scale.spec_replicas)
        if not isinstance(replicas, int):
            return
        metadata, patch = workload["metadata"], Json()
        set_field(patch, kind.scale.status_replicas, replicas)
        if kind.group == "apps":
            self._set_pod_count(workload, replicas)
            ready = replicas if self.new_pods_are_ready else 0
            patch["status"] |= {"observedGeneration": metadata.get("generation", 1), "readyReplicas": ready}
        subresource = "status" if kind.has_status else ""
        self._writer.patch(ResourcePath(kind, metadata.get("namespace", ""), metadata["name"], subresource), patch)

    def _set_pod_count(self, owner: Json, replicas: int) -> None:
        """Create missing pods, or delete the surplus ones with the highest numbers."""
        metadata = owner["metadata"]
        namespace = metadata["namespace"]
        pods = [pod for pod in self._storage.list(PODS.resource) if _is_owned(pod, metadata["uid"])]
        for pod in pods[replicas:]:
            self._writer.delete(ResourcePath(PODS, namespace, pod["metadata"]["name"]))
        names = (f"{metadata['name']}-{number:05}" for number in count())
        unused = (name for name in names if self._storage.get(PODS.resource, (namespace, name)) is None)
        for _ in range(replicas - len(pods)):
            self._writer.create(ResourcePath(PODS, namespace), self._pod(owner, next(unused)))

    def _pod(self, owner: Json, name: str) -> Json:
        template = (owner.get("spec") or {}).get("template") or {}
        labels = (template.get("metadata") or {}).get("labels") or {}
        now = format_rfc3339(self._clock())
        ready = {"type": "Ready", "status": str(self.new_pods_are_ready), "lastTransitionTime": now}
        return {
            "metadata": {"name": name, "labels": labels, "ownerReferences": [{"uid": owner["metadata"]["uid"]}]},
            "spec": template.get("spec") or {"containers": [{"name": "it"}]},
            "status": {"phase": "Running", "startTime": now, "conditions": [ready]},
        }


def _is_owned(pod: Json, uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in pod["metadata"].get("ownerReferences") or ())
