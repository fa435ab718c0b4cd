"""The surroundings of the attacked process: control plane, Prometheus, http backend, tenants and their permissions."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tests.control_plane import programs
from tests.control_plane.cluster import LOOPBACK, ControlPlane, control_plane, free_port
from tests.integration.scaling import allow_widgets
from tests.integration.service import apply_manifests
from tests.prometheus.server import prometheus
from tests.prometheus.target import Target, target
from tests.security.soak.api import Endpoint
from tests.security.soak.http_backend import Documents, http_backend
from tests.security.soak.memory_limit import memory_limit
from tests.security.soak.pod import Pod, container, manifest_limit
from tests.security.soak.tenant import NAMESPACE

HOSTILE: Final = ("mallory-1", "mallory-2", "mallory-3")
HPA: Final = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
_GROUPS: Final = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")
_WIDGETS_EDIT: Final = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "widgets-edit", "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
    "rules": [{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["create", "delete", "get", "update"]}],
}


@dataclass(frozen=True)
class Environment:
    """The running parts."""

    plane: ControlPlane
    target: Target
    documents: Documents
    pod: Pod
    port: int

    def endpoint(self, user: str) -> Endpoint:
        return Endpoint.of(self.plane.server, self.plane.folder, user)

    def attack_config(self, seed: int, start: float) -> dict[str, Any]:
        """Return the input of the attacking process."""
        token = ("create", "token", "default", "--duration=2h")
        tenants = [
            {
                "namespace": name,
                "endpoint": asdict(self.endpoint(name)),
                "token": self.plane.kubectl(*token, f"--namespace={name}").strip(),
            }
            for name in HOSTILE
        ]
        return {"tenants": tenants, "host": LOOPBACK, "port": self.port, "seed": seed, "start": start}


def find_programs() -> dict[str, Path]:
    """Return the programs of the control plane; exit if one is missing."""
    found = {name: programs.find(name) for name in programs.REQUIRED}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise SystemExit(f"not found: {', '.join(missing)}; run `make control-plane`")
    return {name: path for name, path in found.items() if path is not None}


@contextmanager
def environment(folder: Path) -> Iterator[Environment]:
    """Start everything except the attackers."""
    with ExitStack() as stack:
        plane = stack.enter_context(control_plane(folder, find_programs()))
        scraped, documents = stack.enter_context(target()), stack.enter_context(http_backend())
        metrics = stack.enter_context(prometheus(folder / "prometheus", target=scraped.address))
        port = free_port()
        apply_manifests(plane, port)
        allow_widgets(plane)
        plane.kubectl("apply", "-f", "-", stdin=json.dumps(_WIDGETS_EDIT))
        for namespace in (NAMESPACE, *HOSTILE):
            _create_tenant(plane, namespace)
        plane.kubeconfig(HPA, groups=_GROUPS)
        config = folder / "config.yaml"
        config.write_text(json.dumps(_config(port, metrics.url, documents.url)))
        limit = stack.enter_context(memory_limit(manifest_limit()))
        pod = Pod(
            _command(plane, config), folder / "steadyscale.log", f"https://{LOOPBACK}:{port}", limit, manifest_limit()
        )
        pod.start()
        stack.callback(pod.stop)
        yield Environment(plane, scraped, documents, pod, port)


def _create_tenant(plane: ControlPlane, namespace: str) -> None:
    plane.kubectl("create", "namespace", namespace)
    plane.kubeconfig(namespace)  # a user with the name of the namespace
    account = f"--serviceaccount={namespace}:default"
    for role in ("edit", "steadyscale:external-metrics-reader"):
        name = role.replace(":", "-")
        binding = ("create", "rolebinding", name, f"--namespace={namespace}", f"--clusterrole={role}")
        plane.kubectl(*binding, f"--user={namespace}", account)


def _command(plane: ControlPlane, config: Path) -> list[str]:
    token = plane.kubectl("create", "token", "steadyscale", "--namespace=steadyscale", "--duration=2h").strip()
    kubeconfig = plane.kubeconfig_with_token("steadyscale", token)
    serve, *flags = [one for one in container()["args"] if not one.startswith("--config=")]
    return [sys.executable, "-m", "adapter", serve, f"--config={config}", f"--kubeconfig={kubeconfig}", *flags]


def _config(port: int, prometheus_url: str, documents_url: str) -> dict[str, Any]:
    """Return a configuration with default limits and two backends that tenants may use."""
    namespaces = {"namespaces": [NAMESPACE, *HOSTILE]}
    return {
        "serving": {"address": LOOPBACK, "port": port, "tls": {"selfManaged": {"namespace": "steadyscale"}}},
        "backends": {
            "main": {"prometheus": {"url": prometheus_url}, "externalMetrics": {}},
            "jobs": {"http": {"url": documents_url}, "externalMetrics": namespaces},
            "closed": {"http": {"url": documents_url}},
        },
    }
