"""A Steadyscale process next to a real control plane, with the registration and the permissions of its manifests."""

import json
import os
import ssl
import sys
import time
import urllib.request
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, Final

from tests.control_plane.certificates import Credentials
from tests.control_plane.cluster import LOOPBACK, ControlPlane
from tests.control_plane.process import Program
from tests.waiting import GIVE_UP

ROOT: Final = Path(__file__).parents[2]
GROUP: Final = "/apis/external.metrics.k8s.io/v1beta1"
METRIC: Final = f"{GROUP}/namespaces/default/queue-depth"
APISERVICE: Final = "apiservices/v1beta1.external.metrics.k8s.io"


@dataclass(frozen=True)
class Service:
    """The process and its port."""

    plane: ControlPlane
    port: int
    program: Program

    def request(
        self,
        path: str = METRIC,
        *,
        credentials: Credentials | None = None,
        headers: dict[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[int, Any]:
        """Send a request to the port, not through the API server; verify the certificate as the API server does."""
        connection = HTTPSConnection("localhost", self.port, timeout=15, context=tls or self.tls(credentials))
        try:
            connection.request("GET", path, headers=headers or {})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def tls(self, credentials: Credentials | None = None) -> ssl.SSLContext:
        """Return a TLS context that trusts only the caBundle of the APIService."""
        spec = self.plane.get(APISERVICE)["spec"]
        context = ssl.create_default_context(cadata=b64decode(spec["caBundle"]).decode())
        if credentials is not None:
            context.load_cert_chain(*credentials.save(self.plane.folder, "client"))
        return context

    def is_available(self) -> bool:
        return condition(self.plane.get(APISERVICE), "Available") == "True"


@contextmanager
def service(
    plane: ControlPlane,
    port: int,
    *,
    metrics: dict[str, Any] | None = None,
    flags: tuple[str, ...] = ("--no-autoscaler",),
    self_managed: dict[str, str] | None = None,
) -> Iterator[Service]:
    """Run a process that is registered and available while the context is open."""
    program = process(plane, port, metrics=metrics, flags=flags, self_managed=self_managed)
    program.start()
    try:
        running = Service(plane, port, program)
        until(running.is_available, "the APIService is available")
        yield running
    finally:
        program.stop()


def process(
    plane: ControlPlane,
    port: int,
    *,
    files: dict[str, str] | None = None,
    metrics: dict[str, Any] | None = None,
    flags: tuple[str, ...] = ("--no-autoscaler",),
    self_managed: dict[str, str] | None = None,
) -> Program:
    """Return a process that serves on a port with the token of its service account; it is not started."""
    tls = {"files": files} if files else {"selfManaged": {"namespace": "steadyscale", **(self_managed or {})}}
    config, log = plane.folder / f"service-{port}.yaml", plane.folder / f"service-{port}.log"
    config.write_text(json.dumps({**_config(port, tls), **(metrics or {})}))
    token = plane.kubectl("create", "token", "steadyscale", "--namespace=steadyscale", "--duration=1h").strip()
    kubeconfig = plane.kubeconfig_with_token(f"service-{port}", token)
    command = [sys.executable, "-m", "adapter", "serve", *flags, f"--config={config}", f"--kubeconfig={kubeconfig}"]
    return Program(command, log, lambda: _is_ready(port))


def apply_manifests(plane: ControlPlane, port: int) -> None:
    """Apply manifests/base, with a Service that refers to a port on the loopback interface."""
    overlay = plane.folder / "loopback"
    overlay.mkdir(exist_ok=True)
    external = {"type": "ExternalName", "externalName": "localhost", "ports": [{"name": "https", "port": port}]}
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(ROOT / "manifests" / "base", overlay)],
        "patches": [
            _patch("Service", "steadyscale", "/spec", external),
            _patch("APIService", "v1beta1.external.metrics.k8s.io", "/spec/service/port", port),
            _patch("APIService", "v1alpha1.debug.steadyscale.dev", "/spec/service/port", port),
        ],
    }
    (overlay / "kustomization.yaml").write_text(json.dumps(kustomization))
    plane.kubectl("apply", f"--kustomize={overlay}")


def condition(resource: Any, kind: str) -> str:
    """Return the status of a condition; empty if the object has none."""
    conditions = resource.get("status", {}).get("conditions") or ()
    return next((str(one["status"]) for one in conditions if one["type"] == kind), "")


def until(is_true: Callable[[], bool], description: str, *, within: float = GIVE_UP) -> None:
    """Poll a condition until it holds; fail after ``within`` seconds."""
    deadline = time.monotonic() + within
    while not is_true():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} seconds: {description}")
        time.sleep(0.2)


def _patch(kind: str, name: str, path: str, value: Any) -> dict[str, Any]:
    operation = [{"op": "replace", "path": path, "value": value}]
    return {"target": {"kind": kind, "name": name}, "patch": json.dumps(operation)}


def _config(port: int, tls: dict[str, Any]) -> dict[str, Any]:
    series = [{"value": 20, "labels": {"queue": "a"}}, {"value": 10, "labels": {"queue": "b"}}]
    return {
        "serving": {"address": LOOPBACK, "port": port, "tls": tls},
        "auth": {"tokenCacheTTL": "1s", "authorizedTTL": "1s", "unauthorizedTTL": "1s"},
        "limits": {"shutdownDelay": "0s", "drainTimeout": "2s"},
        "log": {"format": "text"},
        "rules": [{"name": "queue-depth", "static": series}],
    }


def _is_ready(port: int) -> bool:
    unverified = ssl._create_unverified_context()  # noqa: S323 - like the probes of the kubelet
    try:
        with urllib.request.urlopen(f"https://{LOOPBACK}:{port}/readyz", timeout=2, context=unverified) as response:
            return bool(response.status == 200)
    except OSError:
        return False
