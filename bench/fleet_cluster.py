"""The cluster objects of the fleet benchmark: custom targets, 100 metrics, and an autoscaler for each target."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from tests.control_plane.cluster import ControlPlane
from tests.integration.scaling import allow_widgets
from tests.integration.service import apply_manifests

Json = dict[str, Any]
METRICS = 100
POD_AUTOSCALER = (
    "steadyscale.dev/v1beta1",
    "PodAutoscaler",
    "/apis/steadyscale.dev/v1beta1/namespaces/bench/podautoscalers",
)
HPA = (
    "autoscaling/v2",
    "HorizontalPodAutoscaler",
    "/apis/autoscaling/v2/namespaces/bench/horizontalpodautoscalers",
)
_WIDGETS = "/apis/example.com/v1/namespaces/bench/widgets"


def prepare(plane: ControlPlane, count: int, port: int) -> None:
    """Apply the shipped manifests and create the targets."""
    apply_manifests(plane, port)
    allow_widgets(plane)
    plane.kubectl("wait", "--for=condition=Established", "crd/podautoscalers.steadyscale.dev")
    plane.kubectl("create", "namespace", "bench")
    plane.controller_manager.stop()
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 8}}
    targets = [{**widget, "metadata": {"name": f"w{index}"}} for index in range(count)]
    _send(plane, lambda kube: (kube.create(_WIDGETS, target) for target in targets))
    sizes = {f"{_WIDGETS}/w{index}/status": {"size": 8, "selector": f"app=w{index}"} for index in range(count)}
    _send(plane, lambda kube: (kube.patch(path, {"status": size}) for path, size in sizes.items()))


def create_autoscalers(plane: ControlPlane, count: int, kind: tuple[str, str, str]) -> None:
    """Create an autoscaler of the given kind for each target, all with the same spec."""
    autoscalers = [_autoscaler(index, kind) for index in range(count)]
    _send(plane, lambda kube: (kube.create(kind[2], autoscaler) for autoscaler in autoscalers))


def _autoscaler(index: int, kind: tuple[str, str, str]) -> Json:
    external = {"metric": {"name": f"m{index % METRICS}"}, "target": {"type": "AverageValue", "averageValue": "5"}}
    spec = {
        "scaleTargetRef": {"apiVersion": "example.com/v1", "kind": "Widget", "name": f"w{index}"},
        "minReplicas": 1,
        "maxReplicas": 20,
        "metrics": [{"type": "External", "external": external}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    }
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": f"a{index}"}, "spec": spec}


def _send(plane: ControlPlane, requests: Callable[[KubeClient], Iterable[Awaitable[object]]]) -> None:
    """Send many requests, 40 at a time."""

    async def send_all() -> None:
        limit = asyncio.Semaphore(40)

        async def send(request: Awaitable[object]) -> None:
            async with limit:
                await request

        async with KubeClient.open(await connect(plane.kubeconfig("admin"))) as kube:
            await asyncio.gather(*map(send, requests(kube)))

    asyncio.run(send_all())


class StaticMetrics:
    """The 100 metrics, as static rules in the configuration file of the adapter."""

    def __init__(self, config: Path) -> None:
        self._config = config
        self._values = {f"m{index}": 40 for index in range(METRICS)}
        self._next = 0

    def publish(self) -> None:
        """Write the values into the configuration file."""
        content = json.loads(self._config.read_text())
        content["rules"] = [{"name": name, "static": [{"value": value}]} for name, value in self._values.items()]
        fresh = self._config.with_suffix(".new")
        fresh.write_text(json.dumps(content))
        fresh.replace(self._config)

    def change(self) -> None:
        """Toggle the values of the next 5 % of the metrics."""
        for _ in range(METRICS // 20):
            name = f"m{self._next % METRICS}"
            self._next += 1
            self._values[name] = 80 if self._values[name] == 40 else 40
        self.publish()
