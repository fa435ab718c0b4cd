"""What makes a number of replicas come true: a tiny controller manager and kubelet in one.

Deployments, StatefulSets and ReplicaSets get pods that are running and ready, and a status that counts them; custom
targets get the status that they asked for. It can be switched off, and then nothing that is asked for happens.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import count
from typing import Any, Final

from adapter.fakecluster.kinds import Json, Kind, Kinds
from adapter.fakecluster.resource_path import Place
from adapter.fakecluster.storage import Shelf, Write
from adapter.fakecluster.writes import Writing
from autoscaler.wire import print_time

PODS: Final = Kind("", "v1", "pods", "Pod", has_status=True)


class Workloads:
    """Follows every workload. Run it beside the cluster."""

    def __init__(self, shelf: Shelf, kinds: Kinds, writing: Writing, clock: Callable[[], datetime]) -> None:
        self._shelf = shelf
        self._kinds = kinds
        self._writing = writing
        self._clock = clock
        self._is_on = True
        self._subscription = shelf.subscribe()  # from now on, so that nothing is missed before it runs
        self.pods_become_ready = True
        """Whether new pods are ready at once; if not, a test makes them so."""

    def switch_off(self) -> None:
        """Let nothing follow from what is asked for."""
        self._is_on = False

    def switch_on(self) -> None:
        """Catch up, and go on."""
        self._is_on = True
        for kind in tuple(self._kinds):
            for thing in self._shelf.all(kind.resource):
                self._follow(kind, thing)

    async def run(self) -> None:
        """Follow what happens until cancelled."""
        while True:
            write = await self._subscription.writes.get()
            if write is not None and self._is_on:
                self._hear(write)

    def _hear(self, write: Write) -> None:
        kind = next((kind for kind in self._kinds if kind.resource == write.resource), None)
        if kind is None or kind.scale is None:
            return
        thing = write.after or write.before
        if thing is None:
            return
        metadata = thing["metadata"]
        current = self._shelf.get(kind.resource, (metadata.get("namespace", ""), metadata["name"]))
        if current is None:
            self._populate(thing, 0)
        else:
            self._follow(kind, current)

    def _follow(self, kind: Kind, thing: Json) -> None:
        if kind.scale is None:
            return
        wanted = _at(thing, kind.scale.spec_replicas)
        if not isinstance(wanted, int):
            return
        if kind.group == "apps":
            self._populate(thing, wanted)
        status = _nested(kind.scale.status_replicas, wanted)
        if kind.group == "apps":
            status["status"] |= {
                "observedGeneration": thing["metadata"].get("generation", 1),
                "readyReplicas": wanted if self.pods_become_ready else 0,
            }
        metadata = thing["metadata"]
        sub = "status" if kind.has_status else ""
        self._writing.patch(Place(kind, metadata.get("namespace", ""), metadata["name"], sub), status)

    def _populate(self, owner: Json, wanted: int) -> None:
        """Make as many pods as are wanted, and take away the newest of those that are not."""
        metadata = owner["metadata"]
        mine = [pod for pod in self._shelf.all(("", "pods")) if _is_owned(pod, metadata["uid"])]
        namespace = metadata["namespace"]
        for pod in mine[wanted:]:
            self._writing.delete(Place(PODS, namespace, pod["metadata"]["name"], ""))
        names = (name for name in _names(metadata["name"]) if self._shelf.get(PODS.resource, (namespace, name)) is None)
        for _ in range(wanted - len(mine)):
            self._writing.create(Place(PODS, namespace, "", ""), self._pod(owner, next(names)))

    def _pod(self, owner: Json, name: str) -> Json:
        template = (owner.get("spec") or {}).get("template") or {}
        labels = (template.get("metadata") or {}).get("labels") or {}
        now = print_time(self._clock())
        ready = {"type": "Ready", "status": str(self.pods_become_ready), "lastTransitionTime": now}
        return {
            "metadata": {"name": name, "labels": labels, "ownerReferences": [{"uid": owner["metadata"]["uid"]}]},
            "spec": template.get("spec") or {"containers": [{"name": "it"}]},
            "status": {"phase": "Running", "startTime": now, "conditions": [ready]},
        }


def _names(owner: str) -> Iterator[str]:
    return (f"{owner}-{number:05}" for number in count())


def _is_owned(pod: Json, uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in pod["metadata"].get("ownerReferences") or ())


def _at(content: Json, path: str) -> Any:  # noqa: ANN401 - whatever the object holds there
    found: Any = content
    for step in path.removeprefix(".").split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _nested(path: str, value: int) -> Json:
    content: Any = value
    for step in reversed(path.removeprefix(".").split(".")):
        content = {step: content}
    return dict(content)
