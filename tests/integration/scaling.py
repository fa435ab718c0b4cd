"""The autoscaler as a process next to a real API server, with metrics that tests set in its configuration file."""

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
from tests.waiting import GIVE_UP

NAMESPACE = "steadyscale"
ROOT = Path(__file__).parents[2]
FAST = ("--horizontal-pod-autoscaler-sync-period=1s", "--fallback-floor=2s")

Json = dict[str, Any]


@dataclass
class Rig:
    """Autoscaler processes, the static metrics that they read, and a namespace with workloads."""

    plane: ControlPlane
    namespace: str
    metrics: dict[str, int] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)
    extra_config: Json = field(default_factory=dict)
    """Further configuration; its rules follow those of the metrics."""

    server: str = ""
    """The URL by which processes reach the API server; empty: directly."""

    prefix: tuple[str, ...] = ()
    """The beginning of the command line of processes, such as ``env NAME=VALUE``."""

    @property
    def config(self) -> Path:
        return self.plane.folder / f"{self.namespace}.yaml"

    def set(self, **metrics: int | None) -> None:
        """Set the values of metrics; None removes the metric."""
        for name, value in metrics.items():
            self.metrics.pop(name, None)
            if value is not None:
                self.metrics[name] = value
        rules = [{"name": name, "static": [{"value": value}]} for name, value in self.metrics.items()]
        rules += self.extra_config.get("rules", [])
        replacement = self.config.with_suffix(".new")
        replacement.write_text(json.dumps({"log": {"format": "text"}, **self.extra_config, "rules": rules}))
        replacement.replace(self.config)

    def set_and_wait(self, **metrics: int | None) -> None:
        """Set the values of metrics and wait until the process has reloaded its configuration."""
        before = self._reloads()
        self.set(**metrics)
        until(lambda: self._reloads() > before, "configuration reloaded")

    def _reloads(self) -> int:
        return self.programs[0].log.read_text().count("configuration reloaded")

    def start(self, *flags: str, name: str = "one") -> Program:
        """Start a process with the token of its service account."""
        kubeconfig = self.plane.kubeconfig_with_token(f"{self.namespace}-{name}", self.token())
        if self.server:
            kubeconfig.write_text(kubeconfig.read_text().replace(self.plane.server, self.server))
        log = self.plane.folder / f"{self.namespace}-{name}.log"
        lease = f"--leader-elect-resource-name={NAMESPACE}"
        command = [*self.prefix, sys.executable, "-m", "adapter", "serve", "--no-adapter", f"--config={self.config}"]
        program = Program([*command, f"--kubeconfig={kubeconfig}", lease, *FAST, *flags], log, lambda: True)
        program.start()
        self.programs.append(program)
        return program

    def token(self) -> str:
        """Return a new token of the service account."""
        return self.plane.kubectl("create", "token", NAMESPACE, f"--namespace={NAMESPACE}", "--duration=1h").strip()

    def apply(self, *objects: Json) -> None:
        for each in objects:
            each["metadata"].setdefault("namespace", self.namespace)
        self.plane.kubectl("apply", "-f", "-", stdin=json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))

    def get(self, kind: str, name: str = "web") -> Any:
        return self.plane.get(kind, name, f"--namespace={self.namespace}")

    def patch(self, kind: str, name: str, patch: Json, *arguments: str) -> None:
        self.plane.kubectl(
            "patch",
            kind,
            name,
            f"--namespace={self.namespace}",
            "--type=merge",
            f"--patch={json.dumps(patch)}",
            *arguments,
        )

    def replicas(self, name: str = "web", kind: str = "deployment") -> int:
        return int(self.get(kind, name)["spec"]["replicas"])

    def wait_for_replicas(
        self, replicas: int, name: str = "web", kind: str = "deployment", within: float = GIVE_UP
    ) -> None:
        description = f"{kind} {name} has {replicas} replicas"
        try:
            until(lambda: self.replicas(name, kind) == replicas, description, within=within)
        except AssertionError as error:
            raise AssertionError(f"{error}; actual: {self.replicas(name, kind)}\n{self.logs()}") from None

    def condition(self, kind: str, name: str = "web") -> tuple[str, str] | None:
        for one in self.get("podautoscaler", name).get("status", {}).get("conditions") or ():
            if one["type"] == kind:
                return one["status"], one["reason"]
        return None

    def wait_for_condition(
        self, kind: str, status: str, reason: str, name: str = "web", within: float = GIVE_UP
    ) -> None:
        try:
            until(lambda: self.condition(kind, name) == (status, reason), f"{kind}={status}/{reason}", within=within)
        except AssertionError as error:
            raise AssertionError(f"{error}; actual: {self.condition(kind, name)}\n{self.logs()}") from None

    def events(self, name: str = "web") -> list[str]:
        found = self.plane.get("events", f"--namespace={self.namespace}")["items"]
        own = [
            one for one in found if one["involvedObject"]["name"] == name and one["source"]["component"] == NAMESPACE
        ]
        return [one["reason"] for one in own for _ in range(one.get("count") or 1)]

    def logs(self) -> str:
        return "\n".join(program.tail(15) for program in self.programs)


@contextmanager
def short_fallbacks(rig: Rig) -> Iterator[None]:
    """Lower the minimum of failureDurationSeconds in the CRD to that of the process while the context is open."""
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/metrics/items/properties/external"
    minimum = f"{path}/properties/fallback/properties/failureDurationSeconds/minimum"

    def set_minimum(seconds: int) -> None:
        patch = json.dumps([{"op": "replace", "path": minimum, "value": seconds}])
        rig.plane.kubectl("patch", "crd", "podautoscalers.steadyscale.dev", "--type=json", "-p", patch)

    set_minimum(2)
    yield
    rig.plane.kubectl("delete", "spa", "--all", f"--namespace={rig.namespace}")
    set_minimum(180)


def create_with_retry(rig: Rig, scaler: Json) -> None:
    """Create an object that a changed CRD accepts; the API server applies the change with a delay."""
    name = scaler["metadata"]["name"]
    body = json.dumps({**scaler, "metadata": {"name": name, "namespace": rig.namespace}})

    def accepted() -> bool:
        return f"/{name} created" in rig.plane.kubectl("create", "-f", "-", stdin=body, check=False)

    until(accepted, f"{name} is accepted")


def allow_widgets(plane: ControlPlane) -> None:
    """Create a CRD with a scale subresource, and the role that lets the autoscaler watch its objects."""
    rbac, role = (
        {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "steadyscale:widgets"}},
        "ClusterRole",
    )
    rule = {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["list", "watch"]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": "steadyscale:widgets"}
    account = {"kind": "ServiceAccount", "name": NAMESPACE, "namespace": NAMESPACE}
    binding = {**rbac, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [account]}
    objects = [WIDGETS, {**rbac, "kind": role, "rules": [rule]}, binding]
    plane.kubectl("apply", "-f", "-", stdin=json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    plane.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")


@contextmanager
def rig(plane: ControlPlane, namespace: str, *flags: str, server: str = "") -> Iterator[Rig]:
    """Install the CRDs and roles, and run one process while the context is open."""
    plane.kubectl("apply", "--server-side", f"--kustomize={ROOT / 'manifests' / 'crds'}")
    for name in ("namespace", "service-account", "rbac", "autoscaler-rbac"):
        plane.kubectl("apply", "-f", str(ROOT / "manifests" / "base" / f"{name}.yaml"))
    plane.kubectl("create", "namespace", namespace)
    plane.kubectl("wait", "--for=condition=Established", "crd/podautoscalers.steadyscale.dev")
    created = Rig(plane, namespace, server=server)
    created.set(queue=40)
    created.start(*flags)
    try:
        yield created
    finally:
        for program in created.programs:
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
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    body = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 20, "behavior": behavior}
    return {
        "apiVersion": "steadyscale.dev/v1beta1",
        "kind": "PodAutoscaler",
        "metadata": {"name": name},
        "spec": {**body, "metrics": list(metrics) or [external()], **spec},
    }
