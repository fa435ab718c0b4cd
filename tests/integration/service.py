"""Our own process beside a real control plane: registered by its own manifests, with no right but those in them."""

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

ROOT: Final = Path(__file__).parents[2]
GROUP: Final = "/apis/external.metrics.k8s.io/v1beta1"
METRIC: Final = f"{GROUP}/namespaces/default/queue-depth"
APISERVICE: Final = "apiservices/v1beta1.external.metrics.k8s.io"


@dataclass(frozen=True)
class Service:
    """The process, and where it listens."""

    plane: ControlPlane
    port: int
    program: Program

    def ask(
        self,
        path: str = METRIC,
        *,
        show: Credentials | None = None,
        headers: dict[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[int, Any]:
        """Ask straight at the port, past the API server; verify the certificate as the API server would."""
        connection = HTTPSConnection("localhost", self.port, timeout=15, context=tls or self.tls(show))
        try:
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def tls(self, show: Credentials | None = None) -> ssl.SSLContext:
        """Trust what the APIService's caBundle says, and nothing else."""
        spec = self.plane.get(APISERVICE)["spec"]
        context = ssl.create_default_context(cadata=b64decode(spec["caBundle"]).decode())
        if show is not None:
            context.load_cert_chain(*show.save(self.plane.folder, "shown"))
        return context

    def is_available(self) -> bool:
        return condition(self.plane.get(APISERVICE), "Available") == "True"


@contextmanager
def service(
    plane: ControlPlane, port: int, *, metrics: dict[str, Any] | None = None, **self_managed: str
) -> Iterator[Service]:
    """Run our process for the length of the block, registered and available."""
    program = process(plane, port, metrics=metrics, **self_managed)
    program.start()
    try:
        running = Service(plane, port, program)
        until(running.is_available, "the APIService is available", within=40)
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
    **self_managed: str,
) -> Program:
    """Make ready to run our process on a port, with its service account's token and nothing else."""
    tls = {"files": files} if files else {"selfManaged": {"namespace": "steadyscale", **self_managed}}
    config, log = plane.folder / f"service-{port}.yaml", plane.folder / f"service-{port}.log"
    config.write_text(json.dumps({**_config(port, tls), **(metrics or {})}))
    token = plane.kubectl("create", "token", "steadyscale", "--namespace=steadyscale", "--duration=1h").strip()
    kubeconfig = plane.kubeconfig_with_token(f"service-{port}", token)
    command = [sys.executable, "-m", "adapter", "serve", *flags, f"--config={config}", f"--kubeconfig={kubeconfig}"]
    return Program(command, log, lambda: _is_ready(port))


def apply_manifests(plane: ControlPlane, port: int) -> None:
    """Apply manifests/base as it is, but for the way from the API server to us: both are on loopback."""
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
        ],
    }
    (overlay / "kustomization.yaml").write_text(json.dumps(kustomization))
    plane.kubectl("apply", f"--kustomize={overlay}")


def condition(thing: Any, kind: str) -> str:
    """Give the status of one of an object's conditions, empty if it has none yet."""
    conditions = thing.get("status", {}).get("conditions") or ()
    return next((str(one["status"]) for one in conditions if one["type"] == kind), "")


def until(is_true: Callable[[], bool], what: str, *, within: float = 30) -> None:
    """Wait for something that takes its time."""
    deadline = time.monotonic() + within
    while not is_true():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} seconds: {what}")
        time.sleep(0.2)


def _patch(kind: str, name: str, path: str, value: Any) -> dict[str, Any]:
    operation = [{"op": "replace", "path": path, "value": value}]
    return {"target": {"kind": kind, "name": name}, "patch": json.dumps(operation)}


def _config(port: int, tls: dict[str, Any]) -> dict[str, Any]:
    series = [{"value": 20, "labels": {"queue": "a"}}, {"value": 10, "labels": {"queue": "b"}}]
    return {
        "serving": {"address": LOOPBACK, "port": port, "tls": tls},
        "auth": {"tokenCacheTTL": "1s", "authorizedTTL": "1s", "unauthorizedTTL": "1s"},
        "limits": {"shutdownDelay": "0s", "drain": "2s"},
        "log": {"format": "text"},
        "rules": [{"name": "queue-depth", "static": series}],
    }


def _is_ready(port: int) -> bool:
    unverified = ssl._create_unverified_context()  # noqa: S323 - as a kubelet's probe does
    try:
        with urllib.request.urlopen(f"https://{LOOPBACK}:{port}/readyz", timeout=2, context=unverified) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
