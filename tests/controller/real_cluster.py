"""A real API server with the interface of the fake cluster, and virtual time for the controller.

The controller manager is stopped; `WorkloadStatuses` sets the status of Deployments instead.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from http.client import HTTPException, HTTPSConnection
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from adapter.fakecluster.api_errors import ApiError
from adapter.fakecluster.cluster import loop_clock, loop_time
from adapter.fakecluster.server import ReceivedRequest
from autoscaler.controller.dependencies import Dependencies
from autoscaler.kube import freshness, freshness_check, watch
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import KubeConnection, connect
from autoscaler.kube.informer import Informer
from autoscaler.kube.objects import key_of, resource_version_of
from tests.control_plane.cluster import ControlPlane
from tests.controller.front_proxy import REQUEST_ID, FrontProxy
from tests.fakes.fault_injection import FaultInjection

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
_AUTOSCALERS = "/apis/steadyscale.dev/v1beta1/podautoscalers"
_WORKLOADS = ("apis/apps/v1/deployments", "apis/apps/v1/statefulsets", "apis/apps/v1/replicasets")
_CORE = ("api/v1/replicationcontrollers", "api/v1/pods", "api/v1/events")
_CRDS = Path(__file__).parents[2] / "manifests" / "crds"
_DELETE_NOW = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
_POLL_SECONDS = 0.002
_IDLE_TIMEOUT = 30.0


class WorkloadStatuses:
    """Sets status.replicas of Deployments to spec.replicas, instead of the controller manager."""

    def __init__(self, cluster: "RealCluster") -> None:
        self._cluster = cluster
        self._is_on = True

    def pause(self) -> None:
        """Stop updating statuses."""
        self._is_on = False

    def update(self) -> bool:
        """Update the status of every Deployment; return whether one has changed."""
        changed = False
        for deployment in self._cluster.list("/apis/apps/v1/namespaces/shop/deployments") if self._is_on else ():
            replicas = deployment["spec"]["replicas"]
            if replicas != deployment.get("status", {}).get("replicas", 0):
                path = f"/apis/apps/v1/namespaces/shop/deployments/{deployment['metadata']['name']}/status"
                self._cluster.patch(path, {"status": {"replicas": replicas, "readyReplicas": replicas}})
                changed = True
        return changed


@contextmanager
def _watches_in_virtual_time() -> Iterator[None]:
    """Keep watches open, and do not check their age: the clock of the controller is ahead of the server's."""
    with (
        patch.multiple(freshness, MAX_AGE=timedelta.max, LIST_AFTER=timedelta.max),
        patch.object(freshness_check, "_INTERVAL", timedelta(days=1)),
        patch.object(watch, "_WATCH_SECONDS", (86_400, 86_400)),
    ):
        yield


class RealCluster:
    """A real API server; tests access it directly, the controller through a proxy with fault injection."""

    def __init__(self, plane: ControlPlane, proxy: FrontProxy, clock: Callable[[], datetime]) -> None:
        self.clock = clock
        self.workloads = WorkloadStatuses(self)
        self.dependencies: Callable[[], list[Dependencies]] = list
        """Returns the dependencies of all running controllers."""
        self._proxy = proxy
        self._plane = plane
        self._server: HTTPSConnection | None = None
        self._request_ids = count(1)
        self._in_flight: set[str] = set()
        self._is_changed = True

    @classmethod
    @asynccontextmanager
    async def serving(
        cls, plane: ControlPlane, clock: Callable[[], datetime] = loop_clock
    ) -> AsyncIterator["RealCluster"]:
        """Run the proxy until the end of the block, on a cleaned-up cluster."""
        with FrontProxy.open(await connect(plane.kubeconfig("admin"))) as proxy, _watches_in_virtual_time():
            cluster = cls(plane, proxy, clock)
            try:
                cluster._clear()
                yield cluster
            finally:
                cluster._clear()
                cluster._disconnect()

    @property
    def connection(self) -> KubeConnection:
        """The connection through the proxy; each request has an id, so that its completion is known."""

        async def credentials() -> Mapping[str, str]:
            request_id = str(next(self._request_ids))
            self._in_flight.add(request_id)
            self._is_changed = True
            return {REQUEST_ID: request_id}

        return replace(self._proxy.server, server=self._proxy.url, credentials=credentials, now=loop_time)

    def client(self) -> AbstractAsyncContextManager[KubeClient]:
        return KubeClient.open(self.connection)

    @property
    def requests(self) -> list[ReceivedRequest]:
        return self._proxy.requests

    @property
    def faults(self) -> FaultInjection:
        return self._proxy.faults

    # --- objects -----------------------------------------------------------------------------------------------------

    def get(self, path: str) -> Json | None:
        try:
            return self._request("GET", path)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def create(self, collection: str, body: Json) -> Json:
        """Create an object with its status; one with deletionTimestamp gets a finalizer and is deleted."""
        metadata = dict(body["metadata"])
        is_terminating = metadata.pop("deletionTimestamp", None) is not None
        if is_terminating:
            metadata["finalizers"] = ["steadyscale.dev/terminating"]
        made = self._request("POST", collection, _with_kind(collection, {**body, "metadata": metadata}))
        path = f"{collection}/{metadata['name']}"
        if body.get("status"):
            made = self.patch(f"{path}/status", {"status": body["status"]})
        if is_terminating:
            self._request("DELETE", path, _DELETE_NOW)
        return made

    def patch(self, path: str, patch: Json) -> Json:
        return self._request("PATCH", path, patch, "application/merge-patch+json")

    def put(self, path: str, content: Json) -> Json:
        return self._request("PUT", path, content)

    def delete(self, path: str) -> None:
        """Delete an object and remove its finalizers."""
        if self._request("DELETE", path, _DELETE_NOW).get("metadata", {}).get("finalizers"):
            self.patch(path, {"metadata": {"finalizers": None}})

    def list(self, collection: str) -> list[Json]:
        found: list[Json] = self._request("GET", collection)["items"]
        return found

    # --- idle --------------------------------------------------------------------------------------------------------

    def is_idle(self) -> bool:
        """Return whether no request is in flight, all statuses are set and all informers are up to date."""
        self._in_flight -= self._proxy.completed
        if self._in_flight:
            return False
        if self._is_changed:
            self._is_changed = False
            if self.workloads.update() or not all(map(self.is_up_to_date, self.dependencies())):
                self._is_changed = True
                return False
        return True

    def is_up_to_date(self, dependencies: Dependencies) -> bool:
        """Return whether the informers have the current state of the cluster."""
        informers: list[Informer[Any]] = [dependencies.autoscalers, dependencies.hpas]
        informers += dependencies.targets._informers.values()
        informers += [index.informer for index in dependencies.pods._namespaces.values()]
        for informer in informers:
            if informer.is_synced:
                objects = self.list(informer._source.path)
                current = {key_of(content): resource_version_of(content) for content in objects}
                if {key: stored.resource_version for key, stored in informer._store.items()} != current:
                    return False
        return True

    # --- HTTP --------------------------------------------------------------------------------------------------------

    def _clear(self) -> None:
        for autoscaler in self.list(_AUTOSCALERS):
            namespace = autoscaler["metadata"]["namespace"]
            self.delete(_AUTOSCALERS.replace("/pod", f"/namespaces/{namespace}/pod"))
        for namespace in NAMESPACES:
            if self.get(f"/api/v1/namespaces/{namespace}") is None:
                self.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
            for collection in (*_WORKLOADS, *_CORE):
                group, _, plural = collection.rpartition("/")
                path = f"/{group}/namespaces/{namespace}/{plural}"
                for content in self.list(path):
                    self.delete(f"{path}/{content['metadata']['name']}")

    def _request(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Json:
        """Send a request directly to the API server."""
        self._is_changed = self._is_changed or method != "GET"
        try:
            return self._send(method, path, body, kind)
        except (HTTPException, OSError):  # the idle connection was closed
            self._disconnect()
            return self._send(method, path, body, kind)

    def _send(self, method: str, path: str, body: Json | None, kind: str) -> Json:
        if self._server is None:
            self._server = HTTPSConnection(
                urlsplit(self._plane.server).netloc, timeout=20, context=self._proxy.server.tls
            )
        self._server.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind})
        response = self._server.getresponse()
        content: Json = json.loads(response.read())
        if response.status >= 300:
            raise ApiError(response.status, content.get("reason", ""), content.get("message", ""))
        return content

    def _disconnect(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


def _with_kind(collection: str, body: Json) -> Json:
    """Add apiVersion and kind, which the fake cluster does not require."""
    root, _, plural = collection.rpartition("/")
    parts = root.strip("/").split("/")
    version = parts[1] if parts[0] == "api" else "/".join(parts[1:3])
    return {"apiVersion": version, "kind": _KINDS[plural], **body}


@contextmanager
def idle_time(is_idle: Callable[[], bool]) -> Iterator[None]:
    """Replace the event loop's time by virtual time that starts at zero and advances only while the cluster is idle."""
    loop: Any = asyncio.get_running_loop()
    selector, now = loop._selector, [0.0]
    original_select = selector.select

    def select(timeout: float | None = None) -> Any:
        if timeout is not None and timeout <= 0:
            return original_select(0)
        started = time.monotonic()
        while not (events := original_select(_POLL_SECONDS)):
            if timeout is not None and is_idle():
                now[0] += timeout
                return ()
            if time.monotonic() - started > _IDLE_TIMEOUT:
                raise TimeoutError("the cluster does not become idle")
        return events

    selector.select, loop.time = select, lambda: now[0]
    try:
        yield
    finally:
        del selector.select, loop.time


@contextmanager
def without_controller_manager(plane: ControlPlane) -> Iterator[ControlPlane]:
    """Stop the controller manager, which would change the objects of a test."""
    plane.kubectl("apply", "--server-side", f"--kustomize={_CRDS}")
    plane.kubectl("wait", "--for=condition=Established", "crd/podautoscalers.steadyscale.dev")
    plane.controller_manager.stop()
    try:
        yield plane
    finally:
        plane.controller_manager.start()
