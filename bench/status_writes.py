"""CPU time of the API server per write: the status of a PodAutoscaler against that of an HPA, a scale and an event.

The writes go to a real API server, in rounds over all forms, each in another order. The status is that of a rescale as
the controller stores it. Beside the form that `StatusWriter` sends, the same status is written by a merge patch,
without the history, without changes, to a definition whose status is not atomic, and to one without a schema. A custom
resource with a status of one number shows the least that a write of a custom resource costs. The reference is the
status of an HPA. The lowest value of all rounds counts, because other programs of the machine only add to it. Run with
``python -m bench.status_writes``.
"""

import argparse
import asyncio
import random
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autoscaler.kube.autoscalers import StatusWriter, podautoscaler_informer
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.wire import decode_autoscaler, decode_status
from bench.process_stats import thread_cpu
from tests.control_plane import programs
from tests.control_plane.cluster import ControlPlane, control_plane
from tools.crd.definition import definition

Json = dict[str, Any]
Write = Callable[[int], Awaitable[object]]

_OBJECTS = 20
_CONCURRENT = 4
_REFERENCE = "HPA: status"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_HPAS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_EVENTS = "/api/v1/namespaces/default/events"
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SPEC: Json = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    "minReplicas": 1,
    "maxReplicas": 20,
    "metrics": [
        {
            "type": "External",
            "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "5"}},
        }
    ],
}
_CONDITIONS = (
    ("AbleToScale", "SucceededRescale", "the HPA controller was able to update the target scale to 16"),
    ("ScalingActive", "ValidMetricFound", "the HPA was able to successfully calculate a replica count from queue(nil)"),
    ("ScalingLimited", "DesiredWithinRange", "the desired count is within the acceptable range"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--writes", type=int, default=150, help="writes of each form in a round")
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, control_plane(Path(folder), programs.require()) as plane:
        plane.controller_manager.stop()
        costs = asyncio.run(run(plane, options.writes, options.rounds))
    print(f"{'CPU time of the API server':<52}{'ms/write':>10}{'ratio':>8}")
    for name, cost in costs.items():
        print(f"{name:<52}{cost * 1000:>10.2f}{cost / costs[_REFERENCE]:>8.2f}")


async def run(plane: ControlPlane, writes: int, rounds: int) -> dict[str, float]:
    """Return the CPU time of the API server per write, by form."""
    async with KubeClient.open(await connect(plane.kubeconfig("admin"))) as kube:
        forms = await prepare(kube)
        pid, costs = plane.apiserver.pid, dict.fromkeys(forms, float("inf"))
        for write in forms.values():  # the first writes fill caches
            await send(write, iter(range(2 * _OBJECTS)))
        idle = await idle_share(pid)
        for number in range(rounds):
            for name, write in random.Random(number).sample(sorted(forms.items()), len(forms)):  # noqa: S311
                before, started = thread_cpu(pid), asyncio.get_running_loop().time()
                await send(write, iter(range(number * writes, (number + 1) * writes)))
                spent = thread_cpu(pid) - before - idle * (asyncio.get_running_loop().time() - started)
                costs[name] = min(costs[name], spent / writes)
    return costs


async def prepare(kube: KubeClient) -> dict[str, Write]:
    """Create definitions and objects; return the form of each write by name."""
    shipped = await objects(kube, "/apis/steadyscale.dev/v1beta1/namespaces/default/podautoscalers", definition())
    fields = await objects(kube, "/apis/fields.bench/v1beta1/namespaces/default/podautoscalers", _with_field_owners())
    no_schema = await objects(kube, "/apis/open.bench/v1beta1/namespaces/default/podautoscalers", _without_schema())
    hpas = await objects(kube, _HPAS, None)
    deployments = await objects(kube, _DEPLOYMENTS, None, {"template": _TEMPLATE, "selector": _SELECTOR})
    writer = StatusWriter(kube, podautoscaler_informer(kube))

    async def own(number: int) -> None:
        content = shipped.at(number)
        written = await writer.write(decode_autoscaler(content), decode_status(own_status(number)))
        content["metadata"]["resourceVersion"] = written.metadata.resource_version

    async def event(number: int) -> None:
        about = {"kind": "HorizontalPodAutoscaler", "namespace": "default", "name": f"a{number % _OBJECTS}"}
        metadata = {"generateName": "bench-", "namespace": "default"}
        texts = {"type": "Normal", "reason": "SuccessfulRescale", "message": "New size: 16"}
        await kube.create(_EVENTS, {"metadata": metadata, "involvedObject": about, **texts})

    return {
        _REFERENCE: lambda number: hpas.put(number, hpa_status(number)),
        "scale": deployments.put_scale,
        "event": event,
        "PodAutoscaler: status": own,
        "PodAutoscaler: status without history": lambda number: shipped.put(number, own_status(number, history=False)),
        "PodAutoscaler: status by merge patch": lambda number: shipped.patch(number, own_status(number)),
        "PodAutoscaler: merge patch without changes": lambda number: shipped.patch(number, own_status(0)),
        "definition with one owner per field: PUT": lambda number: fields.put(number, own_status(number)),
        "definition with one owner per field: merge patch": lambda number: fields.patch(number, own_status(number)),
        "definition without schema: PUT": lambda number: no_schema.put(number, own_status(number)),
        "definition without schema, status of one number": lambda number: no_schema.put(number, {"replicas": number}),
    }


@dataclass
class Objects:
    """Objects of one kind, with their last known versions."""

    kube: KubeClient
    path: str
    known: list[Json] = field(default_factory=list)

    def at(self, number: int) -> Json:
        return self.known[number % _OBJECTS]

    async def put(self, number: int, status: Json) -> None:
        content = self.at(number)
        body = {"apiVersion": content["apiVersion"], "kind": content["kind"], "metadata": _identity(content)}
        spec = {"spec": content["spec"]} if self.path == _HPAS else {}  # client-go sends the whole object
        self._update(number, await self.kube.replace(self._path(number, "status"), {**body, **spec, "status": status}))

    async def put_scale(self, number: int) -> None:
        body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": _identity(self.at(number))}
        replicas = {"spec": {"replicas": _replicas(number)}}
        self._update(number, await self.kube.replace(self._path(number, "scale"), {**body, **replicas}))

    async def patch(self, number: int, status: Json) -> None:
        metadata = {"resourceVersion": self.at(number)["metadata"]["resourceVersion"]}
        patch = {"metadata": metadata, "status": status}
        self._update(number, await self.kube.patch(self._path(number, "status"), patch))

    def _path(self, number: int, subresource: str) -> str:
        return f"{self.path}/{self.at(number)['metadata']['name']}/{subresource}"

    def _update(self, number: int, response: Json) -> None:
        self.at(number)["metadata"]["resourceVersion"] = response["metadata"]["resourceVersion"]


def _identity(content: Json) -> Json:
    return {key: content["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}


async def objects(kube: KubeClient, path: str, crd: Json | None, spec: Json | None = None) -> Objects:
    """Create the definition, unless the kind is built in, and the objects."""
    version = "/".join(path.split("/")[2:4])
    kind = {_HPAS: "HorizontalPodAutoscaler", _DEPLOYMENTS: "Deployment"}.get(path, "PodAutoscaler")
    if crd is not None:
        await kube.create(_DEFINITIONS, crd)
        while not await _is_served(kube, f"{_DEFINITIONS}/{crd['metadata']['name']}", path):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    created = Objects(kube, path)
    for number in range(_OBJECTS):
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": f"a{number}"}, "spec": spec or _SPEC}
        created.known.append(await kube.create(path, body))
    return created


async def _is_served(kube: KubeClient, definition_path: str, path: str) -> bool:
    conditions = (await kube.get(definition_path)).get("status", {}).get("conditions") or ()
    if not any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
        return False
    group = "/".join(path.split("/")[:4])
    return any(each["name"] == "podautoscalers/status" for each in (await kube.get(group))["resources"])


def _with_field_owners() -> Json:
    """Return a definition whose status is not atomic: managedFields then has an entry for each field of it."""
    crd = _renamed("fields.bench")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["status"]["x-kubernetes-map-type"]
    return crd


def _without_schema() -> Json:
    crd = _renamed("open.bench")
    (version,) = crd["spec"]["versions"]
    version["schema"]["openAPIV3Schema"] = _OPEN
    del version["additionalPrinterColumns"]
    return crd


def _renamed(group: str) -> Json:
    crd = definition()
    crd["metadata"]["name"] = f"podautoscalers.{group}"
    crd["spec"]["group"] = group
    for name in ("categories", "shortNames"):
        del crd["spec"]["names"][name]
    return crd


def hpa_status(number: int) -> Json:
    """Return the status of an HPA after a rescale; two in a row differ."""
    time, replicas = f"2026-03-01T12:{number // 60 % 60:02}:{number % 60:02}Z", _replicas(number)
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": time, "reason": reason, "message": message}
        for kind, reason, message in _CONDITIONS
    ]
    current = {"averageValue": str(replicas)}
    return {
        "observedGeneration": 1,
        "lastScaleTime": time,
        "currentReplicas": replicas,
        "desiredReplicas": replicas,
        "currentMetrics": [{"type": "External", "external": {"metric": {"name": "queue"}, "current": current}}],
        "conditions": conditions,
    }


def own_status(number: int, *, history: bool = True) -> Json:
    """Return the same status with what only a PodAutoscaler has."""
    status = hpa_status(number)
    text = f"v1;at={status['lastScaleTime']};rec=16@285.01,12@45,8@0;up=8@285.01,4@15.2;down=8@0"
    texts = {"reference": "Deployment/web", "targets": f"{_replicas(number)}/5 (avg)", "state": "normal"}
    return {**status, **texts, **({"controllerState": text} if history else {})}


def _replicas(number: int) -> int:
    return 8 + number % 9


_SELECTOR = {"matchLabels": {"app": "web"}}
_TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "it", "image": "none"}]}}


async def send(write: Write, numbers: Iterator[int]) -> None:
    """Write some at a time; the writes of one object follow each other."""
    locks = [asyncio.Lock() for _ in range(_OBJECTS)]

    async def work() -> None:
        for number in numbers:
            async with locks[number % _OBJECTS]:
                await write(number)

    await asyncio.gather(*(work() for _ in range(_CONCURRENT)))


async def idle_share(pid: int) -> float:
    """Return the CPU cores that the API server uses without writes."""
    await asyncio.sleep(2)
    before = thread_cpu(pid)
    await asyncio.sleep(5)
    return (thread_cpu(pid) - before) / 5


if __name__ == "__main__":
    main()
