"""Autoscaler processes with a faulty connection to the API server, each rig in a namespace of its own.

Rigs share a control plane: the proxy restricts what the processes see to the namespace of the rig, and each rig has a
service account, permissions and a Lease of its own.
"""

import ssl
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from tests.control_plane.cluster import LOOPBACK, ControlPlane
from tests.control_plane.process import Program
from tests.faults.api import Api, Json, Refused, path_of
from tests.faults.proxy import Fault, FaultProxy, serving_tls
from tests.integration.scaling import NAMESPACE, ROOT, Rig, autoscaler, deployment
from tests.integration.service import until

_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_LEASES: Final = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}


@dataclass
class FaultRig(Rig):
    """Processes, each behind a proxy of its own; the tests access the API server directly."""

    proxies: list[FaultProxy] = field(default_factory=list)
    resources: ExitStack = field(default_factory=ExitStack)

    @property
    def api(self) -> Api:
        return Api(self.plane)

    @property
    def proxy(self) -> FaultProxy:
        """The proxy of the first process."""
        return self.proxies[0]

    @property
    def log(self) -> str:
        """The log of the first process."""
        return self.programs[0].log.read_text()

    def start(self, *flags: str, name: str = "one", faults: Sequence[Fault] = ()) -> Program:
        """Start a process behind a new proxy with faults."""
        certificate, key = self.plane.authority.server(LOOPBACK).save(
            self.plane.folder, f"proxy-{self.namespace}-{name}"
        )
        upstream = ssl.create_default_context(cafile=self.plane.folder / "ca.crt")
        proxy = FaultProxy(self.plane.server, upstream, serving_tls(certificate, key), namespace=self.namespace)
        proxy.faults += faults
        self.proxies.append(self.resources.enter_context(proxy.serving()))
        self.server = proxy.url
        return super().start(f"--leader-elect-resource-name={self.namespace}", *flags, name=name)

    def token(self) -> str:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{self.namespace}/token"
        return str(self.api.request("POST", path, body)["status"]["token"])

    def apply(self, *objects: Json) -> None:
        for each in objects:
            each["metadata"].setdefault("namespace", self.namespace)
            self.api.apply(each)

    def get(self, kind: str, name: str = "web") -> Any:
        return self.api.get(path_of(kind, self.namespace, name))

    def patch(self, kind: str, name: str, patch: Json, *_: str) -> None:
        self.api.patch(path_of(kind, self.namespace, name), patch)

    def delete(self, kind: str, name: str = "web") -> None:
        self.api.delete(path_of(kind, self.namespace, name))

    def events(self, name: str = "web") -> list[str]:
        found = self.api.get(path_of("Event", self.namespace))["items"]
        own = [each for each in found if each["involvedObject"]["name"] == name and each["source"]["component"]]
        return [each["reason"] for each in own for _ in range(each.get("count") or 1)]

    @property
    def lease(self) -> str:
        """The path of the Lease."""
        return path_of("Lease", NAMESPACE, self.namespace)

    def holder(self) -> str:
        """Return the identity of the leader; empty if there is none."""
        with suppress(Refused):
            return str(self.api.get(self.lease)["spec"].get("holderIdentity") or "")
        return ""

    def wait_until_ready(self, within: float = 120) -> None:
        """Create a Deployment with 8 replicas and its autoscaler, and wait for the first reconcile."""
        self.apply(deployment("web", 8), autoscaler("web"))
        self.wait_for_condition("AbleToScale", "True", "ReadyForNewScale", within=within)

    def condition(self, kind: str, name: str = "web") -> tuple[str, str] | None:
        self.assert_running()
        return super().condition(kind, name)

    def assert_running(self) -> None:
        """Assert that no process has ended."""
        for program in self.programs:
            assert program.is_running, f"a process has ended:\n{program.tail(40)}"

    def assert_survived(self) -> None:
        """Assert that no process has ended, and that no unexpected error was logged."""
        self.assert_running()
        for program in self.programs:
            log = program.log.read_text()
            # uvloop logs a traceback of its own if a connection is closed during the TLS handshake.
            assert log.count("Traceback") == log.count("Fatal error on SSL protocol"), program.tail(60)

    def grant(self) -> None:
        """Create the bindings of the ClusterRoles that the manifests define."""
        for role in ("autoscaler", "external-metrics"):
            self._create(f"{_RBAC}/clusterrolebindings", self._binding("ClusterRole", f"steadyscale:{role}", role))

    def revoke(self, role: str = "autoscaler") -> None:
        """Delete the binding of a ClusterRole."""
        self.api.delete(f"{_RBAC}/clusterrolebindings/{self.namespace}-{role}")

    def _binding(self, kind: str, role: str, suffix: str) -> Json:
        return {
            "kind": f"{kind}Binding",
            "metadata": {"name": f"{self.namespace}-{suffix}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": self.namespace, "namespace": NAMESPACE}],
        }

    def create_namespace(self) -> None:
        self._create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def install(self) -> None:
        """Create namespace, service account and permissions."""
        metadata = {"name": self.namespace}
        self.create_namespace()
        self._create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": metadata})
        rules = [
            {**_LEASES, "verbs": ["create"]},
            {**_LEASES, "resourceNames": [self.namespace], "verbs": ["get", "list", "update", "watch"]},
        ]
        own = f"{_RBAC}/namespaces/{NAMESPACE}"
        self._create(f"{own}/roles", {"metadata": metadata, "rules": rules})
        self._create(f"{own}/rolebindings", self._binding("Role", self.namespace, "leases"))
        self.grant()

    def _create(self, collection: str, content: Json) -> None:
        self.api.request("POST", collection, content)


@contextmanager
def fault_rig(plane: ControlPlane, namespace: str, *flags: str) -> Iterator[FaultRig]:
    """Run one process in a namespace of its own until the end of the block; it must survive."""
    rig = FaultRig(plane, namespace)
    rig.install()
    rig.set(queue=40)
    with rig.resources:
        rig.start(*flags)
        try:
            yield rig
            rig.assert_survived()
        finally:
            for program in rig.programs:
                program.kill()
            rig.api.delete(f"/api/v1/namespaces/{namespace}")


def install_manifests(plane: ControlPlane) -> None:
    """Install the CRDs and the roles."""
    plane.kubectl("apply", "--server-side", f"--kustomize={ROOT / 'manifests' / 'crds'}")
    for name in ("namespace", "service-account", "rbac", "autoscaler-rbac"):
        plane.kubectl("apply", "-f", str(ROOT / "manifests" / "base" / f"{name}.yaml"))
    plane.kubectl("wait", "--for=condition=Established", "crd/podautoscalers.steadyscale.dev")


def wait_for_log(rig: FaultRig, text: str, within: float = 60, program: int = 0) -> None:
    """Wait until a process has logged a text."""
    log = rig.programs[program].log
    until(lambda: text in log.read_text(), f"{text!r} is logged", within=within)
