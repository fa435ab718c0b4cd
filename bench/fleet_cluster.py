"""What a fleet is measured on: custom targets, a hundred metrics, and an autoscaler of either kind for each target."""

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
OURS = ("steadyscale.dev/v1beta1", "PodAutoscaler", "/apis/steadyscale.dev/v1beta1/namespaces/bench/podautoscalers")
NATIVE = (
    "autoscaling/v2",
    "HorizontalPodAutoscaler",
    "/apis/autoscaling/v2/namespaces/bench/horizontalpodautoscalers",
)
_WIDGETS = "/apis/example.com/v1/namespaces/bench/widgets"


def prepare(plane: ControlPlane, count: int, port: int) -> None:
    """Install what is shipped, and make the targets."""
    apply_manifests(plane, port)
    allow_widgets(plane)
    plane.kubectl("wait", "--for=condition=Established", "crd/podautoscalers.steadyscale.dev")
    plane.kubectl("create", "namespace", "bench")
    plane.controller_manager.stop()
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 8}}
    targets = [{**widget, "metadata": {"name": f"w{index}"}} for index in range(count)]
    _ask(plane, lambda kube: (kube.create(_WIDGETS, target) for target in targets))
    sizes = {f"{_WIDGETS}/w{index}/status": {"size": 8, "selector": f"app=w{index}"} for index in range(count)}
    _ask(plane, lambda kube: (kube.patch(path, {"status": size}) for path, size in sizes.items()))


def create_autoscalers(plane: ControlPlane, count: int, kind: tuple[str, str, str]) -> None:
    """Make an autoscaler for each target; the spec is the same, whichever kind it is of."""
    things = [_autoscaler(index, kind) for index in range(count)]
    _ask(plane, lambda kube: (kube.create(kind[2], thing) for thing in things))


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


def _ask(plane: ControlPlane, questions: Callable[[KubeClient], Iterable[Awaitable[object]]]) -> None:
    """Ask many questions quickly, forty at a time."""

    async def ask() -> None:
        limit = asyncio.Semaphore(40)

        async def one(question: Awaitable[object]) -> None:
            async with limit:
                await question

        async with KubeClient.open(await connect(plane.kubeconfig("admin"))) as kube:
            await asyncio.gather(*map(one, questions(kube)))

    asyncio.run(ask())


class Published:
    """The hundred metrics, as our adapter has them from its configuration."""

    def __init__(self, config: Path) -> None:
        self._config = config
        self._numbers = {f"m{index}": 40 for index in range(METRICS)}
        self._turn = 0

    def publish(self) -> None:
        """Write them into the configuration."""
        content = json.loads(self._config.read_text())
        content["rules"] = [{"name": name, "static": [{"value": value}]} for name, value in self._numbers.items()]
        fresh = self._config.with_suffix(".new")
        fresh.write_text(json.dumps(content))
        fresh.replace(self._config)

    def change(self) -> None:
        """Let the next few be more, or less again."""
        for _ in range(METRICS // 20):
            name = f"m{self._turn % METRICS}"
            self._turn += 1
            self._numbers[name] = 80 if self._numbers[name] == 40 else 40
        self.publish()
