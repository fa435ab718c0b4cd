"""A stage for the controller: the cluster in memory, metrics that a test sets, and time that the test lets pass."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from adapter.fakecluster.cluster import Cluster
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.run import Control
from autoscaler.ports import MetricChange
from autoscaler.readings import MetricsApi, failed, read_external
from autoscaler.settings import Operation
from autoscaler.telemetry import ControllerTelemetry
from autoscaler.types.observation import ExternalReading, UnavailableReading
from autoscaler.values.selector import Selector
from tests.control_plane.cluster import ControlPlane
from tests.controller.real_cluster import RealCluster, patient_time

Json = dict[str, Any]

AUTOSCALERS = "/apis/steadyscale.dev/v1beta1/namespaces/shop/podautoscalers"
NATIVE = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments"
EVENTS = "/api/v1/namespaces/shop/events"
DEFINITION = Path(__file__).parents[2] / "manifests" / "crds" / "podautoscalers.yaml"
ALONE = Operation(leader_elect=False)


@dataclass
class Numbers:
    """External metrics as a test sets them; a text in the place of numbers is why they cannot be read."""

    values: dict[str, tuple[int, ...] | str] = field(default_factory=dict)
    """By metric, or by metric and selector as in ``queue{app=web}``; in thousandths."""

    reads: int = 0
    slow: dict[str, float] = field(default_factory=dict)
    """How many seconds a metric takes."""

    clock: Callable[[], Any] | None = None
    _listeners: list[Callable[[MetricChange], None]] = field(default_factory=list)

    async def read(self, _namespace: str, metric: str, selector: Selector) -> ExternalReading | UnavailableReading:
        self.reads += 1
        if metric in self.slow:
            await asyncio.sleep(self.slow[metric])
        found = self.values.get(f"{metric}{{{selector}}}", self.values.get(metric, "no such metric"))
        if isinstance(found, str):
            return failed(MetricsApi.EXTERNAL, found)
        assert self.clock is not None
        return read_external(found, self.clock())

    def subscribe(self, changed: Callable[[MetricChange], None]) -> Callable[[], None]:
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def set(self, metric: str, *whole: int | str) -> None:
        """Let a metric be so many, and tell everyone who listens."""
        why = next((one for one in whole if isinstance(one, str)), None)
        self.values[metric] = why or tuple(one * 1000 for one in whole if isinstance(one, int))
        for listener in self._listeners:
            listener(MetricChange(metric.partition("{")[0]))


@dataclass
class Stage:
    """The cluster, the metrics, and controllers."""

    cluster: Cluster | RealCluster
    numbers: Numbers
    controls: list[Control] = field(default_factory=list)
    tasks: dict[int, "asyncio.Task[None]"] = field(default_factory=dict)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def start(self, operation: Operation = ALONE, identity: str = "one") -> Control:
        """Start a controller."""
        self.registry = CollectorRegistry()
        control = Control(
            self.cluster.connection,
            self.numbers,
            operation,
            ControllerTelemetry(self.registry),
            self.cluster.clock,
            identity,
        )
        self.controls.append(control)
        self.tasks[id(control)] = asyncio.create_task(control.run(), name=f"controller {identity}")
        return control

    async def stop(self, control: Control) -> None:
        """Stop a controller as a signal does."""
        task = self.tasks.pop(id(control))
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    @asynccontextmanager
    async def performing(self) -> AsyncIterator[None]:
        """Stop what was started, at the end of the block."""
        try:
            yield
        finally:
            for control in tuple(self.controls):
                if id(control) in self.tasks:
                    await self.stop(control)

    def worlds(self) -> list[Dependencies]:
        """Say what the controllers see that control at the moment."""
        return [one._controller._world for one in self.controls if one._controller is not None]

    # --- things ------------------------------------------------------------------------------------------------------

    def deployment(self, name: str = "web", replicas: int = 3) -> None:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "it", "image": "none"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        self.cluster.create(DEPLOYMENTS, {"metadata": {"name": name}, "spec": spec})

    def autoscaler(self, name: str = "web", *metrics: Json, target: str | None = None, **spec: Any) -> None:
        """Create a PodAutoscaler for a Deployment; by default from the queue, five for each pod."""
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target or name}
        body = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 20, "metrics": list(metrics) or [queue()]}
        self.cluster.create(AUTOSCALERS, {"metadata": {"name": name}, "spec": {**body, **spec}})

    def edit(self, name: str = "web", **spec: Any) -> None:
        self.cluster.edit(f"{AUTOSCALERS}/{name}", {"spec": spec})

    def replicas(self, name: str = "web") -> int:
        found = self.cluster.get(f"{DEPLOYMENTS}/{name}")
        assert found is not None
        return int(found["spec"]["replicas"])

    def resize(self, replicas: int, name: str = "web") -> None:
        """Resize a Deployment as somebody else would."""
        self.cluster.edit(f"{DEPLOYMENTS}/{name}", {"spec": {"replicas": replicas}})

    def surge(self, replicas: int, name: str = "web") -> None:
        """Let a Deployment have other pods than it asks for, and keep them."""
        self.cluster.workloads.switch_off()
        self.cluster.edit(f"{DEPLOYMENTS}/{name}/status", {"status": {"replicas": replicas}})

    def status(self, name: str = "web") -> Json:
        found = self.cluster.get(f"{AUTOSCALERS}/{name}")
        assert found is not None
        return dict(found.get("status") or {})

    def condition(self, kind: str, name: str = "web") -> tuple[str, str] | None:
        for one in self.status(name).get("conditions") or ():
            if one["type"] == kind:
                return one["status"], one["reason"]
        return None

    def message(self, kind: str, name: str = "web") -> str:
        return next(one["message"] for one in self.status(name)["conditions"] if one["type"] == kind)

    def events(self, name: str = "web") -> list[str]:
        """Give the reasons of an autoscaler's events, each as often as it happened."""
        mine = [one for one in self.cluster.list(EVENTS) if one["involvedObject"]["name"] == name]
        return [one["reason"] for one in mine for _ in range(one.get("count", 1))]

    def asked(self, verb: str = "", within: str = "") -> list[str]:
        """Give the requests so far, watches left out unless asked for."""
        return [
            f"{one.verb} {one.path}"
            for one in self.cluster.asked
            if one.verb == (verb or one.verb) and within in one.path and (verb or one.verb != "watch")
        ]


@cache
def definition() -> Json:
    """Give the definition of PodAutoscaler, as shipped."""
    found: Json = yaml.load(DEFINITION.read_text(), Loader=yaml.CSafeLoader)
    return found


def queue(name: str = "queue", *, average: int = 5, fallback: Json | None = None, **selector: str) -> Json:
    """Make an External metric."""
    identity: Json = {"name": name}
    if selector:
        identity["selector"] = {"matchLabels": selector}
    external: Json = {"metric": identity, "target": {"type": "AverageValue", "averageValue": str(average)}}
    if fallback is not None:
        external["fallback"] = fallback
    return {"type": "External", "external": external}


def settings(**changes: Any) -> Operation:
    """Make an operation without election, with other settings."""
    return replace(ALONE, settings=replace(ALONE.settings, **changes))


@asynccontextmanager
async def staging(clock: Callable[[], Any] | None = None) -> AsyncIterator[Stage]:
    """Set up a stage for the length of the block."""
    async with Cluster.serving() if clock is None else Cluster.serving(clock) as cluster:
        cluster.define(definition())
        stage = Stage(cluster, Numbers(clock=cluster.clock))
        async with stage.performing():
            yield stage


@asynccontextmanager
async def staging_for_real(plane: ControlPlane) -> AsyncIterator[Stage]:
    """Set up a stage on a real API server, where time passes only while all is at rest."""
    async with RealCluster.serving(plane) as cluster:
        stage = Stage(cluster, Numbers(clock=cluster.clock))
        cluster.worlds = stage.worlds
        with patient_time(cluster.is_at_rest):
            async with stage.performing():
                yield stage
