"""Pods and pod metrics of a scenario in the in-memory cluster: as the simulation has them, but served by an API."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from adapter.fakecluster.cluster import loop_clock
from adapter.fakecluster.kinds import ResourcePath
from adapter.fakecluster.workload_controller import PODS
from autoscaler.simulation.readings import per_replica
from autoscaler.simulation.scenario import Scenario
from autoscaler.values.timestamps import format_rfc3339
from tests.controller.harness import Harness
from tests.fakes.cluster import Cluster

Json = dict[str, Any]

REQUEST: Final = "500m"
_READY_BEFORE: Final = timedelta(hours=1)


class SimulatedPods:
    """Replaces the kubelet and the metrics APIs of the cluster by those of a scenario."""

    def __init__(self, harness: Harness, scenario: Scenario) -> None:
        assert isinstance(harness.cluster, Cluster)
        self._cluster = harness.cluster
        self._scenario = scenario
        self._created = 0
        self._cluster.workloads._set_pod_count = self._set_pod_count  # type: ignore[method-assign]
        metrics = self._cluster.metrics
        metrics.groups = lambda: {"metrics.k8s.io": ("v1beta1",), "custom.metrics.k8s.io": ("v1beta2",)}  # type: ignore[method-assign]
        metrics.handle = self._respond  # type: ignore[assignment, method-assign]

    # --- pods --------------------------------------------------------------------------------------------------------

    def _set_pod_count(self, owner: Json, replicas: int) -> None:
        names = sorted(pod["metadata"]["name"] for pod in self._pods())
        for name in names[replicas:]:
            self._cluster.writer.delete(ResourcePath(PODS, "shop", name))
        now, startup = loop_clock(), self._scenario.startup
        ready_at = now + startup if self._created else self._scenario.start - _READY_BEFORE
        for number in range(len(names), replicas):
            name, self._created = f"pod-{number:05}", self._created + 1
            status = {"phase": "Running", "startTime": _text(ready_at - startup)}
            is_ready = ready_at <= now
            conditions = [_condition(is_ready=is_ready, since=ready_at if is_ready else ready_at - startup)]
            pod = {
                "metadata": {
                    "name": name,
                    "labels": owner["spec"]["selector"]["matchLabels"],
                    "uid": str(self._created),
                },
                "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": REQUEST}}}]},
                "status": {**status, "conditions": conditions},
            }
            uid = self._cluster.writer.create(ResourcePath(PODS, "shop"), pod)["metadata"]["uid"]
            if not is_ready:
                asyncio.get_running_loop().call_later(startup.total_seconds(), self._mark_ready, name, uid, ready_at)

    def _mark_ready(self, name: str, uid: str, ready_at: datetime) -> None:
        if any((pod["metadata"]["name"], pod["metadata"]["uid"]) == (name, uid) for pod in self._pods()):
            patch = {"status": {"conditions": [_condition(is_ready=True, since=ready_at)]}}
            self._cluster.writer.patch(ResourcePath(PODS, "shop", name, "status"), patch)

    def _pods(self) -> list[Json]:
        return list(self._cluster.storage.list(PODS.resource))

    # --- metrics -----------------------------------------------------------------------------------------------------

    def _respond(self, path: str, _query: Mapping[str, str]) -> Json | None:
        """Return the values of the ready pods: the total of the history, divided by them."""
        if not path.startswith(
            ("/apis/metrics.k8s.io/v1beta1/namespaces/", "/apis/custom.metrics.k8s.io/v1beta2/namesp")
        ):
            return None
        ready = [pod for pod in self._pods() if pod["status"]["conditions"][0]["status"] == "True"]
        index = 0 if "metrics.k8s.io/v1beta1" in path else len(self._scenario.histories) - 1
        now = loop_clock()
        milli = per_replica(self._scenario.histories[index].at(now.timestamp()), len(ready))
        make = _usage if index == 0 and "custom" not in path else _value
        items = [] if milli is None else [make(pod, milli, _text(now)) for pod in ready]
        return {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}


def _text(time: datetime) -> str:
    return format_rfc3339(time, "microseconds")


def _condition(*, is_ready: bool, since: datetime) -> Json:
    return {"type": "Ready", "status": str(is_ready), "lastTransitionTime": _text(since)}


def _usage(pod: Json, milli: int, at: str) -> Json:
    metadata = {"name": pod["metadata"]["name"], "namespace": "shop"}
    containers = [{"name": "app", "usage": {"cpu": f"{milli}m"}}]
    return {"metadata": metadata, "timestamp": at, "window": "30s", "containers": containers}


def _value(pod: Json, milli: int, at: str) -> Json:
    described = {"kind": "Pod", "name": pod["metadata"]["name"]}
    return {
        "describedObject": described,
        "metric": {"name": "rps"},
        "timestamp": at,
        "value": f"{milli}m",
        "windowSeconds": 30,
    }
