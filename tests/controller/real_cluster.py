"""A real API server on the controller's stage: the verbs of the cluster in memory, and time that a test lets pass.

Nobody else is on that stage: the controller manager is stopped, and what it would have done to a workload is done here.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime
from http.client import HTTPException, HTTPSConnection
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from adapter.fakecluster.api_errors import Refused
from adapter.fakecluster.cluster import loop_clock
from adapter.fakecluster.fault_injection import Weather
from adapter.fakecluster.server import Asked
from autoscaler.controller.dependencies import Dependencies
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import Connection, connect
from autoscaler.kube.store import Store, key_of, version_of
from tests.control_plane.cluster import ControlPlane
from tests.controller.front_proxy import NUMBER, Front

Json = dict[str, Any]

NAMESPACES = ("shop", "test-namespace")
_KINDS = {
    "podautoscalers": "PodAutoscaler",
    "deployments": "Deployment",
    "statefulsets": "StatefulSet",
    "replicasets": "ReplicaSet",
    "replicationcontrollers": "ReplicationController",
    "pods": "Pod",
    "namespaces": "Namespace",
}
_OURS = "/apis/steadyscale.dev/v1beta1/podautoscalers"
_OTHERS = ("apis/apps/v1/deployments", "apis/apps/v1/statefulsets", "apis/apps/v1/replicasets")
_CORE = ("api/v1/replicationcontrollers", "api/v1/pods", "api/v1/events")
_CRDS = Path(__file__).parents[2] / "manifests" / "crds"
_AT_ONCE = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
_GLANCE = 0.002
_PATIENCE = 30.0


class Followed:
    """What makes a number of replicas come true: every Deployment soon says that it has what it asked for."""

    def __init__(self, cluster: "RealCluster") -> None:
        self._cluster = cluster
        self._is_on = True

    def switch_off(self) -> None:
        """Let nothing follow from what is asked for."""
        self._is_on = False

    def follow(self) -> bool:
        """Let every Deployment have its pods; tell whether one had not."""
        found = False
        for one in self._cluster.list("/apis/apps/v1/namespaces/shop/deployments") if self._is_on else ():
            wanted, has = one["spec"]["replicas"], one.get("status", {}).get("replicas", 0)
            if wanted != has:
                path = f"/apis/apps/v1/namespaces/shop/deployments/{one['metadata']['name']}/status"
                self._cluster.edit(path, {"status": {"replicas": wanted, "readyReplicas": wanted}})
                found = True
        return found


class RealCluster:
    """What a test does to a real API server, past the door through which the controller goes."""

    def __init__(self, plane: ControlPlane, front: Front, clock: Callable[[], datetime]) -> None:
        self.clock = clock
        self.workloads = Followed(self)
        self.worlds: Callable[[], list[Dependencies]] = list
        """Who watches."""
        self._front = front
        self._plane = plane
        self._server: HTTPSConnection | None = None
        self._numbers = count(1)
        self._under_way: set[str] = set()
        self._is_touched = True

    @classmethod
    @asynccontextmanager
    async def serving(
        cls, plane: ControlPlane, clock: Callable[[], datetime] = loop_clock
    ) -> AsyncIterator["RealCluster"]:
        """Open the door for the length of the block, on a stage that was cleared."""
        with Front.open(await connect(plane.kubeconfig("admin"))) as front:
            cluster = cls(plane, front, clock)
            try:
                cluster._clear()
                yield cluster
            finally:
                cluster._clear()
                cluster._hang_up()

    @property
    def connection(self) -> Connection:
        """The way through the door; each request carries a number, so that it is known when it was answered."""

        async def numbered() -> Mapping[str, str]:
            number = str(next(self._numbers))
            self._under_way.add(number)
            self._is_touched = True
            return {NUMBER: number}

        return replace(self._front.server, server=self._front.url, credentials=numbered)

    def client(self) -> AbstractAsyncContextManager[KubeClient]:
        return KubeClient.open(self.connection)

    @property
    def asked(self) -> list[Asked]:
        return self._front.asked

    @property
    def weather(self) -> Weather:
        return self._front.weather

    # --- its objects -------------------------------------------------------------------------------------------------

    def get(self, path: str) -> Json | None:
        try:
            return self._ask("GET", path)
        except Refused as refused:
            if refused.code != 404:
                raise
            return None

    def create(self, collection: str, body: Json) -> Json:
        """Create an object with the status that it has; one that is on its way out stays there until it is deleted."""
        metadata = dict(body["metadata"])
        is_going = metadata.pop("deletionTimestamp", None) is not None
        if is_going:
            metadata["finalizers"] = ["steadyscale.dev/going"]
        made = self._ask("POST", collection, _named(collection, {**body, "metadata": metadata}))
        path = f"{collection}/{metadata['name']}"
        if body.get("status"):
            made = self.edit(f"{path}/status", {"status": body["status"]})
        if is_going:
            self._ask("DELETE", path, _AT_ONCE)
        return made

    def edit(self, path: str, patch: Json) -> Json:
        return self._ask("PATCH", path, patch, "application/merge-patch+json")

    def put(self, path: str, content: Json) -> Json:
        return self._ask("PUT", path, content)

    def delete(self, path: str) -> None:
        """Delete an object, and let it go if it is on its way out."""
        if self._ask("DELETE", path, _AT_ONCE).get("metadata", {}).get("finalizers"):
            self.edit(path, {"metadata": {"finalizers": None}})

    def list(self, collection: str) -> list[Json]:
        found: list[Json] = self._ask("GET", collection)["items"]
        return found

    # --- rest --------------------------------------------------------------------------------------------------------

    def is_at_rest(self) -> bool:
        """Tell whether every answer has come, every workload has its pods, and everything was heard of."""
        self._under_way -= self._front.answered
        if self._under_way:
            return False
        if self._is_touched:
            self._is_touched = False
            if self.workloads.follow() or not all(map(self.has_told, self.worlds())):
                self._is_touched = True
                return False
        return True

    def has_told(self, world: Dependencies) -> bool:
        """Tell whether what is watched is what is there."""
        stores: list[Store[Any]] = [world.autoscalers, world.native, *world.targets._stores.values()]
        stores += [one.store for one in world.pods._watches.values()]
        for store in stores:
            if store.is_complete:
                there = {key_of(one): version_of(one) for one in self.list(store._watched.path)}
                if {key: kept.version for key, kept in store._kept.items()} != there:
                    return False
        return True

    # --- HTTP --------------------------------------------------------------------------------------------------------

    def _clear(self) -> None:
        for one in self.list(_OURS):
            self.delete(_OURS.replace("/pod", f"/namespaces/{one['metadata']['namespace']}/pod"))
        for namespace in NAMESPACES:
            if self.get(f"/api/v1/namespaces/{namespace}") is None:
                self.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
            for collection in (*_OTHERS, *_CORE):
                group, _, plural = collection.rpartition("/")
                path = f"/{group}/namespaces/{namespace}/{plural}"
                for one in self.list(path):
                    self.delete(f"{path}/{one['metadata']['name']}")

    def _ask(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Json:
        """Ask straight at the API server."""
        self._is_touched = self._is_touched or method != "GET"
        try:
            return self._answer(method, path, body, kind)
        except (HTTPException, OSError):  # it had hung up since
            self._hang_up()
            return self._answer(method, path, body, kind)

    def _answer(self, method: str, path: str, body: Json | None, kind: str) -> Json:
        if self._server is None:
            self._server = HTTPSConnection(
                urlsplit(self._plane.server).netloc, timeout=20, context=self._front.server.tls
            )
        self._server.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind})
        answer = self._server.getresponse()
        found: Json = json.loads(answer.read())
        if answer.status >= 300:
            raise Refused(answer.status, found.get("reason", ""), found.get("message", ""))
        return found

    def _hang_up(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


def _named(collection: str, body: Json) -> Json:
    """Say of what kind an object is; the cluster in memory knows without."""
    root, _, plural = collection.rpartition("/")
    parts = root.strip("/").split("/")
    version = parts[1] if parts[0] == "api" else "/".join(parts[1:3])
    return {"apiVersion": version, "kind": _KINDS[plural], **body}


@contextmanager
def patient_time(is_at_rest: Callable[[], bool]) -> Iterator[None]:
    """Let the event loop's time begin at zero, stand still while anything happens, and leap when all is at rest."""
    loop: Any = asyncio.get_running_loop()
    selector, now = loop._selector, [0.0]
    look = selector.select

    def select(timeout: float | None = None) -> Any:
        if timeout is not None and timeout <= 0:
            return look(0)
        began = time.monotonic()
        while not (happened := look(_GLANCE)):
            if timeout is not None and is_at_rest():
                now[0] += timeout
                return ()
            if time.monotonic() - began > _PATIENCE:
                raise TimeoutError("the stage does not come to rest")
        return happened

    selector.select, loop.time = select, lambda: now[0]
    try:
        yield
    finally:
        del selector.select, loop.time


@contextmanager
def alone(plane: ControlPlane) -> Iterator[ControlPlane]:
    """Stop who else would change what a test has put on the stage."""
    plane.kubectl("apply", "--server-side", f"--kustomize={_CRDS}")
    plane.kubectl("wait", "--for=condition=Established", "crd/podautoscalers.steadyscale.dev")
    plane.controller_manager.stop()
    try:
        yield plane
    finally:
        plane.controller_manager.start()
