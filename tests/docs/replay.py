"""A real control plane without nodes, in which a test plays the node: it makes pods ready and runs our process.

What stands between a user's cluster and this one, and nothing else: the Service leads to a port of this machine, the
process that the Deployment asks for runs here with the arguments of its manifest, and its file is the ConfigMap's.
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
    """Plays the node until told to stop."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane, self.port = plane, free_port()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._play, name="node")
        self._program: Program | None = None
        self._config = plane.folder / "mounted.yaml"

    @property
    def token_file(self) -> Path:
        """Where the service account's token is, as in its pod."""
        return self.plane.folder / "token"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        if self._program is not None:
            self._program.stop()

    def log(self) -> str:
        return self._program.tail(40) if self._program is not None else "the process was never started"

    def _play(self) -> None:
        while not self._over.wait(0.5):
            try:
                self._make_pods_ready()
                self._lead_here()
                self._run()
            except RuntimeError as error:  # kubectl's, when something is not there yet
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

    def _lead_here(self) -> None:
        registered = self._found(APISERVICE)
        if registered is None or self._found("service/steadyscale", NAMESPACE) is None:
            return
        if registered["spec"]["service"]["port"] != self.port:
            here = {"type": "ExternalName", "externalName": "localhost"}
            service = {"spec": {**here, "ports": [{"name": "here", "port": self.port}]}}
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
        self.token_file.write_text(token)
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
'''kubectl, but for what needs a node: `exec` runs here what would run in the pod, as the pod's service account.'''
import os, sys
words = sys.argv[1:]
if words[:1] == ["exec"]:
    inside = words[words.index("--") + 1:]
    os.execvp(inside[0], [*inside, "--server=https://localhost:{port}", "--token-file={token}"])
if words[:1] == ["port-forward"]:
    sys.exit(0)
os.execv("{kubectl}", ["kubectl", *words])
"""

STEADYSCALE = """\
#!{python}
# What `kubectl port-forward` would bring to port 6443 of this machine is at another port of it already.
import os, sys
words = sys.argv[1:]
if words[0] == "debug":
    words.append("--server=https://localhost:{port}")
os.execv("{steadyscale}", ["steadyscale", *words])
"""

DOCKER = """\
#!/bin/sh
# There is no container runtime here: what can be shown of the Dockerfile without one is in tests/manifests.
test -e Dockerfile
"""


def steadyscale(node: Node) -> str:
    """Write the program that is called steadyscale in a page's commands."""
    ours = Path(sys.executable).with_name("steadyscale")
    return STEADYSCALE.format(python=sys.executable, port=node.port, steadyscale=ours)


def kubectl(node: Node) -> str:
    """Write the program that is called kubectl in a page's commands."""
    facts = {"port": node.port, "token": node.token_file, "kubectl": node.plane.kubectl_path.resolve()}
    return KUBECTL.format(python=sys.executable, **facts)
