"""Test harness of the controller: fake or real cluster, external metrics set by the test, virtual time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.run import ControllerProcess
from autoscaler.ports import Clock, DecisionListener, MetricChange
from autoscaler.readings import MetricsApi, api_failure, read_external
from autoscaler.settings import ControllerOptions
from autoscaler.telemetry import ControllerTelemetry
from autoscaler.types.observation import ExternalReading, UnavailableReading
from autoscaler.types.status import condition_of
from autoscaler.values.selector import Selector
from tests.control_plane.cluster import ControlPlane
from tests.controller.real_cluster import RealCluster, idle_time
from tests.fakes.cluster import Cluster

Json = dict[str, Any]

AUTOSCALERS = "/apis/steadyscale.dev/v1beta1/namespaces/shop/podautoscalers"
HPAS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments"
EVENTS = "/api/v1/namespaces/shop/events"
DEFINITION = Path(__file__).parents[2] / "manifests" / "crds" / "podautoscalers.yaml"
WITHOUT_LEADER_ELECTION = ControllerOptions(leader_elect=False)


@dataclass
class FakeExternalMetrics:
    """External metrics set by a test; a string instead of numbers is the error of the read."""

    values: dict[str, tuple[int, ...] | str] = field(default_factory=dict)
    """Values in milli-units by metric, or by metric and selector as in ``queue{app=web}``."""

    reads: int = 0
    delays: dict[str, float] = field(default_factory=dict)
    """The duration of a read in seconds, by metric."""

    clock: Callable[[], Any] | None = None
    _listeners: list[Callable[[Sequence[MetricChange]], None]] = field(default_factory=list)

    def read_now(self, namespace: str, metric: str, selector: Selector) -> ExternalReading | UnavailableReading | None:
        return None if metric in self.delays else self._read(namespace, metric, selector)

    async def read(self, namespace: str, metric: str, selector: Selector) -> ExternalReading | UnavailableReading:
        await asyncio.sleep(self.delays.get(metric, 0))
        return self._read(namespace, metric, selector)

    def _read(self, _namespace: str, metric: str, selector: Selector) -> ExternalReading | UnavailableReading:
        self.reads += 1
        values = self.values.get(f"{metric}{{{selector}}}", self.values.get(metric, "no such metric"))
        if isinstance(values, str):
            return api_failure(MetricsApi.EXTERNAL, values)
        assert self.clock is not None
        return read_external(values, self.clock())

    def subscribe(self, changed: Callable[[Sequence[MetricChange]], None]) -> Callable[[], None]:
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def set(self, metric: str, *values: int | str) -> None:
        """Set the values or the error of a metric, and notify listeners."""
        error = next((value for value in values if isinstance(value, str)), None)
        self.values[metric] = error or tuple(value * 1000 for value in values if isinstance(value, int))
        for listener in self._listeners:
            listener([MetricChange(metric.partition("{")[0])])


@dataclass
class Harness:
    """A cluster, external metrics, and controller processes."""

    cluster: Cluster | RealCluster
    external_metrics: FakeExternalMetrics
    processes: list[ControllerProcess] = field(default_factory=list)
    tasks: dict[int, "asyncio.Task[None]"] = field(default_factory=dict)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def start(
        self,
        options: ControllerOptions = WITHOUT_LEADER_ELECTION,
        identity: str = "one",
        listeners: Sequence[DecisionListener] = (),
        clock: Clock | None = None,
    ) -> ControllerProcess:
        """Start a controller process; its clock is by default that of the cluster."""
        self.registry = CollectorRegistry()
        process = ControllerProcess(
            self.cluster.connection,
            self.external_metrics,
            options,
            ControllerTelemetry(self.registry),
            clock or self.cluster.clock,
            identity,
            listeners=listeners,
        )
        self.processes.append(process)
        self.tasks[id(process)] = asyncio.create_task(process.run(), name=f"controller {identity}")
        return process

    async def stop(self, process: ControllerProcess) -> None:
        """Stop a controller process like a signal."""
        task = self.tasks.pop(id(process))
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    @asynccontextmanager
    async def stop_at_exit(self) -> AsyncIterator[None]:
        """Stop all controller processes at the end of the block."""
        try:
            yield
        finally:
            for process in tuple(self.processes):
                if id(process) in self.tasks:
                    await self.stop(process)

    def dependencies(self) -> list[Dependencies]:
        """Return the dependencies of all running controllers."""
        return [one._dependencies for process in self.processes for one in process.controllers.values()]

    # --- objects -----------------------------------------------------------------------------------------------------

    def deployment(self, name: str = "web", replicas: int = 3) -> None:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "it", "image": "none"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        self.cluster.create(DEPLOYMENTS, {"metadata": {"name": name}, "spec": spec})

    def autoscaler(self, name: str = "web", *metrics: Json, target: str | None = None, **spec: Any) -> None:
        """Create a PodAutoscaler for a Deployment; by default with the metric queue and an average of five."""
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target or name}
        body = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 20, "metrics": list(metrics) or [queue()]}
        self.cluster.create(AUTOSCALERS, {"metadata": {"name": name}, "spec": {**body, **spec}})

    def edit(self, name: str = "web", **spec: Any) -> None:
        self.cluster.patch(f"{AUTOSCALERS}/{name}", {"spec": spec})

    def replicas(self, name: str = "web") -> int:
        found = self.cluster.get(f"{DEPLOYMENTS}/{name}")
        assert found is not None
        return int(found["spec"]["replicas"])

    def resize(self, replicas: int, name: str = "web") -> None:
        """Resize a Deployment like another client."""
        self.cluster.patch(f"{DEPLOYMENTS}/{name}", {"spec": {"replicas": replicas}})

    def surge(self, replicas: int, name: str = "web") -> None:
        """Set status.replicas of a Deployment to another value than spec.replicas."""
        self.cluster.workloads.pause()
        self.cluster.patch(f"{DEPLOYMENTS}/{name}/status", {"status": {"replicas": replicas}})

    def status(self, name: str = "web") -> Json:
        found = self.cluster.get(f"{AUTOSCALERS}/{name}")
        assert found is not None
        return dict(found.get("status") or {})

    def condition(self, kind: str, name: str = "web") -> tuple[str, str] | None:
        condition = condition_of(self.status(name), kind)
        return None if condition is None else (condition["status"], condition["reason"])

    def message(self, kind: str, name: str = "web") -> str:
        condition = condition_of(self.status(name), kind)
        assert condition is not None
        return str(condition["message"])

    def events(self, name: str = "web") -> list[str]:
        """Return the reasons of an autoscaler's events, each repeated by its count."""
        events = [event for event in self.cluster.list(EVENTS) if event["involvedObject"]["name"] == name]
        return [event["reason"] for event in events for _ in range(event.get("count", 1))]

    def sent_requests(self, verb: str = "", within: str = "") -> list[str]:
        """Return the requests sent so far, without freshness checks of informers; watches only if ``verb`` is watch."""
        return [
            f"{request.verb} {request.path}"
            for request in self.cluster.requests
            if request.query.get("limit") != "1"
            and request.verb == (verb or request.verb)
            and within in request.path
            and (verb or request.verb != "watch")
        ]


@cache
def definition() -> Json:
    """Return the CustomResourceDefinition of PodAutoscaler from manifests/."""
    found: Json = yaml.load(DEFINITION.read_text(), Loader=yaml.CSafeLoader)
    return found


def queue(name: str = "queue", *, average: int = 5, fallback: Json | None = None, **selector: str) -> Json:
    """Return an External metric."""
    identity: Json = {"name": name}
    if selector:
        identity["selector"] = {"matchLabels": selector}
    external: Json = {"metric": identity, "target": {"type": "AverageValue", "averageValue": str(average)}}
    if fallback is not None:
        external["fallback"] = fallback
    return {"type": "External", "external": external}


def settings(**changes: Any) -> ControllerOptions:
    """Return options without leader election and with changed settings."""
    return replace(WITHOUT_LEADER_ELECTION, settings=replace(WITHOUT_LEADER_ELECTION.settings, **changes))


@asynccontextmanager
async def running_harness(clock: Callable[[], Any] | None = None) -> AsyncIterator[Harness]:
    """Run a harness on the fake cluster until the end of the block."""
    async with Cluster.serving() if clock is None else Cluster.serving(clock) as cluster:
        cluster.install_crd(definition())
        harness = Harness(cluster, FakeExternalMetrics(clock=cluster.clock))
        async with harness.stop_at_exit():
            yield harness


@asynccontextmanager
async def harness_on_control_plane(plane: ControlPlane) -> AsyncIterator[Harness]:
    """Run a harness on a real API server; virtual time advances only while the cluster is idle."""
    async with RealCluster.serving(plane) as cluster:
        harness = Harness(cluster, FakeExternalMetrics(clock=cluster.clock))
        cluster.dependencies = harness.dependencies
        with idle_time(cluster.is_idle):
            async with harness.stop_at_exit():
                yield harness
