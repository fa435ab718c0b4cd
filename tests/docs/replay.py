"""A fake node for a real control plane: it marks pods as ready and runs the Steadyscale process of the Deployment.

The process runs on this machine with the arguments of the manifest and the configuration of the ConfigMap; the Service
points to its port.
"""

import json
import sys
import threading
from pathlib import Path
from typing import Any

from tests.control_plane.cluster import LOOPBACK, ControlPlane, free_port
from tests.control_plane.process import Program
from tests.integration.service import APISERVICE

NAMESPACE = "--namespace=steadyscale"
READY = {"type": "Ready", "status": "True"}


class Node:
    """Acts as the only node of the cluster until it is stopped."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane, self.port = plane, free_port()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="node")
        self._program: Program | None = None
        self._config = plane.folder / "mounted.yaml"

    @property
    def pod_kubeconfig(self) -> Path:
        """The kubeconfig of the service account."""
        return self.plane.folder / "steadyscale-pod.kubeconfig"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        if self._program is not None:
            self._program.stop()

    def log(self) -> str:
        return self._program.tail(40) if self._program is not None else "the process was never started"

    def _loop(self) -> None:
        while not self._stopped.wait(0.5):
            try:
                self._make_pods_ready()
                self._route_service()
                self._run()
            except RuntimeError as error:  # kubectl failed because an object does not exist yet
                with self.plane.folder.joinpath("node.log").open("a") as log:
                    log.write(f"{error}\n")

    def _make_pods_ready(self) -> None:
        for pod in self.plane.get("pods", "--all-namespaces")["items"]:
            conditions = pod["status"].get("conditions") or ()
            if not any(one["type"] == "Ready" and one["status"] == "True" for one in conditions):
                place = f"--namespace={pod['metadata']['namespace']}"
                status = json.dumps({"status": {"phase": "Running", "conditions": [READY]}})
                self.plane.kubectl(
                    "patch", "pod", pod["metadata"]["name"], place, "--subresource=status", f"-p={status}"
                )

    def _route_service(self) -> None:
        api_service = self._found(APISERVICE)
        if api_service is None or self._found("service/steadyscale", NAMESPACE) is None:
            return
        if api_service["spec"]["service"]["port"] != self.port:
            target = {"type": "ExternalName", "externalName": "localhost"}
            service = {"spec": {**target, "ports": [{"name": "steadyscale", "port": self.port}]}}
            self._merge("service/steadyscale", service, NAMESPACE)
            self._merge(APISERVICE, {"spec": {"service": {"port": self.port}}})

    def _run(self) -> None:
        deployment, mounted = self._found("deployment/steadyscale", NAMESPACE), self._found("cm/steadyscale", NAMESPACE)
        if deployment is None or mounted is None:
            return
        if (text := mounted["data"]["config.yaml"]) != (self._config.read_text() if self._config.exists() else ""):
            for name, content in mounted["data"].items():
                self.plane.folder.joinpath(name).write_text(content)
            fresh = self._config.with_suffix(".new")
            fresh.write_text(text)
            fresh.replace(self._config)
        if self._program is None:
            arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
            self._program = self._process([one for one in arguments if not one.startswith("--config=")])
            self._program.start()

    def _process(self, arguments: list[str]) -> Program:
        token = self.plane.kubectl("create", "token", "steadyscale", NAMESPACE, "--duration=1h").strip()
        kubeconfig = self.plane.kubeconfig_with_token("steadyscale-pod", token)
        place = (
            f"--config={self._config}",
            f"--port={self.port}",
            f"--address={LOOPBACK}",
            f"--kubeconfig={kubeconfig}",
        )
        command = [sys.executable, "-m", "adapter", *arguments, *place]
        return Program(command, self.plane.folder / "steadyscale.log", lambda: True)

    def _found(self, *words: str) -> Any:
        found = self.plane.kubectl("get", *words, "-o", "json", "--ignore-not-found")
        return json.loads(found) if found.strip() else None

    def _merge(self, what: str, patch: dict[str, Any], *words: str) -> None:
        self.plane.kubectl("patch", what, "--type=merge", f"-p={json.dumps(patch)}", *words)


KUBECTL = """\
#!{python}
'''kubectl without nodes: `exec` runs the command on this machine with the service account of the pod.'''
import os, sys
words = sys.argv[1:]
if words[:1] == ["exec"]:
    inside = words[words.index("--") + 1:]
    os.execvp(inside[0], [*inside, "--server=https://localhost:{port}", "--kubeconfig={kubeconfig}"])
if words[:1] == ["port-forward"]:
    sys.exit(0)
os.execv("{kubectl}", ["kubectl", *words])
"""

STEADYSCALE = """\
#!{python}
# Replaces `kubectl port-forward`: connects to the port of the process instead of 6443.
import os, sys
words = sys.argv[1:]
if words[0] == "debug":
    words.append("--server=https://localhost:{port}")
os.execv("{steadyscale}", ["steadyscale", *words])
"""

DOCKER = """\
#!/bin/sh
# There is no container runtime; tests/manifests tests the Dockerfile without one.
test -e Dockerfile
"""


def steadyscale(node: Node) -> str:
    """Return the script that replaces `steadyscale` in the commands of a page."""
    ours = Path(sys.executable).with_name("steadyscale")
    return STEADYSCALE.format(python=sys.executable, port=node.port, steadyscale=ours)


def kubectl(node: Node) -> str:
    """Return the script that replaces `kubectl` in the commands of a page."""
    facts = {"port": node.port, "kubeconfig": node.pod_kubeconfig, "kubectl": node.plane.kubectl_path.resolve()}
    return KUBECTL.format(python=sys.executable, **facts)
