"""The autoscaler as a process beside a real API server, with metrics that a test sets by editing its configuration."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.control_plane.cluster import ControlPlane
from tests.control_plane.process import Program
from tests.controller.widgets import WIDGETS
from tests.integration.service import until

NAMESPACE = "steadyscale"
ROOT = Path(__file__).parents[2]
QUICK = ("--horizontal-pod-autoscaler-sync-period=1s", "--fallback-floor=2s")

Json = dict[str, Any]


@dataclass
class Rig:
    """One or more processes of ours, the numbers that they read, and a namespace to scale in."""

    plane: ControlPlane
    namespace: str
    numbers: dict[str, int] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)
    more: Json = field(default_factory=dict)
    """What else is in the configuration; rules come behind those of the numbers."""

    @property
    def config(self) -> Path:
        return self.plane.folder / f"{self.namespace}.yaml"

    def set(self, **numbers: int | None) -> None:
        """Let metrics be so much; None: it has no series."""
        for name, number in numbers.items():
            self.numbers.pop(name, None)
            if number is not None:
                self.numbers[name] = number
        rules = [{"name": name, "static": [{"value": value}]} for name, value in self.numbers.items()]
        fresh = self.config.with_suffix(".new")
        rules += self.more.get("rules", [])
        fresh.write_text(json.dumps({"log": {"format": "text"}, **self.more, "rules": rules}))
        fresh.replace(self.config)

    def set_for_sure(self, **numbers: int | None) -> None:
        """Let metrics be so much, and return when the process has heard of it: a short clock does not wait for that."""
        before = self._reloads()
        self.set(**numbers)
        until(lambda: self._reloads() > before, "the configuration is taken over", within=60)

    def _reloads(self) -> int:
        return self.programs[0].log.read_text().count("configuration reloaded")

    def start(self, *flags: str, name: str = "one") -> Program:
        """Start a process with its service account's token and nothing else."""
        token = self.plane.kubectl("create", "token", NAMESPACE, f"--namespace={NAMESPACE}", "--duration=1h").strip()
        kubeconfig = self.plane.kubeconfig_with_token(f"{self.namespace}-{name}", token)
        log = self.plane.folder / f"{self.namespace}-{name}.log"
        lease = f"--leader-elect-resource-name={NAMESPACE}"
        command = [sys.executable, "-m", "adapter", "serve", "--no-adapter", f"--config={self.config}"]
        program = Program([*command, f"--kubeconfig={kubeconfig}", lease, *QUICK, *flags], log, lambda: True)
        program.start()
        self.programs.append(program)
        return program

    def apply(self, *things: Json) -> None:
        for thing in things:
            thing["metadata"].setdefault("namespace", self.namespace)
        self.plane.kubectl("apply", "-f", "-", stdin=json.dumps({"kind": "List", "apiVersion": "v1", "items": things}))

    def get(self, kind: str, name: str = "web") -> Any:
        return self.plane.get(kind, name, f"--namespace={self.namespace}")

    def patch(self, kind: str, name: str, patch: Json, *words: str) -> None:
        self.plane.kubectl(
            "patch", kind, name, f"--namespace={self.namespace}", "--type=merge", f"--patch={json.dumps(patch)}", *words
        )

    def replicas(self, name: str = "web", kind: str = "deployment") -> int:
        return int(self.get(kind, name)["spec"]["replicas"])

    def becomes(self, replicas: int, name: str = "web", kind: str = "deployment", within: float = 20) -> None:
        what = f"{kind} {name} has {replicas} replicas"
        try:
            until(lambda: self.replicas(name, kind) == replicas, what, within=within)
        except AssertionError as error:
            raise AssertionError(f"{error}; it has {self.replicas(name, kind)}\n{self.logs()}") from None

    def condition(self, kind: str, name: str = "web") -> tuple[str, str] | None:
        for one in self.get("podautoscaler", name).get("status", {}).get("conditions") or ():
            if one["type"] == kind:
                return one["status"], one["reason"]
        return None

    def says(self, kind: str, status: str, reason: str, name: str = "web", within: float = 20) -> None:
        try:
            until(lambda: self.condition(kind, name) == (status, reason), f"{kind}={status}/{reason}", within=within)
        except AssertionError as error:
            raise AssertionError(f"{error}; it says {self.condition(kind, name)}\n{self.logs()}") from None

    def events(self, name: str = "web") -> list[str]:
        found = self.plane.get("events", f"--namespace={self.namespace}")["items"]
        mine = [
            one for one in found if one["involvedObject"]["name"] == name and one["source"]["component"] == NAMESPACE
        ]
        return [one["reason"] for one in mine for _ in range(one.get("count") or 1)]

    def logs(self) -> str:
        return "\n".join(program.tail(15) for program in self.programs)


@contextmanager
def short_fallbacks(rig: Rig) -> Iterator[None]:
    """Let the definition accept fallbacks after seconds, as the floor we set does, for the length of the block."""
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/metrics/items/properties/external"
    least = f"{path}/properties/fallback/properties/failureDurationSeconds/minimum"

    def let(seconds: int) -> None:
        patch = json.dumps([{"op": "replace", "path": least, "value": seconds}])
        rig.plane.kubectl("patch", "crd", "podautoscalers.steadyscale.dev", "--type=json", "-p", patch)

    let(2)
    yield
    rig.plane.kubectl("delete", "spa", "--all", f"--namespace={rig.namespace}")
    let(180)


def create_soon(rig: Rig, scaler: Json) -> None:
    """Create what a definition that was just changed accepts: the API server takes a moment to go by it."""
    name = scaler["metadata"]["name"]
    body = json.dumps({**scaler, "metadata": {"name": name, "namespace": rig.namespace}})

    def accepted() -> bool:
        return f"/{name} created" in rig.plane.kubectl("create", "-f", "-", stdin=body, check=False)

    until(accepted, f"{name} is accepted")


def allow_widgets(plane: ControlPlane) -> None:
    """Let there be a custom kind with a scale, and let our process watch it, as its owner would have to."""
    rbac, role = (
        {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "steadyscale:widgets"}},
        "ClusterRole",
    )
    rule = {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["list", "watch"]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": "steadyscale:widgets"}
    account = {"kind": "ServiceAccount", "name": NAMESPACE, "namespace": NAMESPACE}
    binding = {**rbac, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [account]}
    things = [WIDGETS, {**rbac, "kind": role, "rules": [rule]}, binding]
    plane.kubectl("apply", "-f", "-", stdin=json.dumps({"kind": "List", "apiVersion": "v1", "items": things}))
    plane.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")


@contextmanager
def rig(plane: ControlPlane, namespace: str, *flags: str) -> Iterator[Rig]:
    """Install what is shipped, and run one process for the length of the block."""
    plane.kubectl("apply", "--server-side", f"--kustomize={ROOT / 'manifests' / 'crds'}")
    for name in ("namespace", "service-account", "rbac", "autoscaler-rbac"):
        plane.kubectl("apply", "-f", str(ROOT / "manifests" / "base" / f"{name}.yaml"))
    plane.kubectl("create", "namespace", namespace)
    plane.kubectl("wait", "--for=condition=Established", "crd/podautoscalers.steadyscale.dev")
    made = Rig(plane, namespace)
    made.set(queue=40)
    made.start(*flags)
    try:
        yield made
    finally:
        for program in made.programs:
            program.stop()
        plane.kubectl("delete", "namespace", namespace, "--wait=false")


def deployment(name: str = "web", replicas: int = 8) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "it", "image": "none"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def external(name: str = "queue", average: int = 5, **more: Any) -> Json:
    target = {"type": "AverageValue", "averageValue": str(average)}
    return {"type": "External", "external": {"metric": {"name": name}, "target": target, **more}}


def autoscaler(name: str = "web", *metrics: Json, target: Json | None = None, **spec: Any) -> Json:
    reference = target or {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    at_once = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    body = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 20, "behavior": at_once}
    return {
        "apiVersion": "steadyscale.dev/v1beta1",
        "kind": "PodAutoscaler",
        "metadata": {"name": name},
        "spec": {**body, "metrics": list(metrics) or [external()], **spec},
    }
