"""A fake node for a real control plane: it marks pods as ready and runs the Steadyscale process of the Deployment.

The process runs on this machine with the arguments, ConfigMaps and Secrets of the manifest; the Service points to its
port. It is restarted when the arguments change.
"""

import json
import sys
import threading
from base64 import b64decode
from pathlib import Path
from typing import Any

from adapter.config.loading import DEFAULT_PATH
from adapter.tls.registration import API_SERVICES
from tests.control_plane.cluster import LOOPBACK, ControlPlane, free_port
from tests.control_plane.process import Program
from tests.docs.mounts import project
from tests.integration.service import APISERVICE

NAMESPACE = "--namespace=steadyscale"
READY = {"type": "Ready", "status": "True"}
IN_POD = """\
import sys
from pathlib import Path
from adapter.__main__ import main
from adapter.commands import serve
serve.DEFAULT_PATH = Path(sys.argv.pop(1))
sys.exit(main())
"""
"""Runs the process with its default configuration file in a mounted folder of this machine."""


class Node:
    """Acts as the only node of the cluster until it is stopped."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane, self.port = plane, free_port()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="node")
        self._program: Program | None = None
        self._arguments: list[str] | None = None

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

    @property
    def pid(self) -> int:
        """The id of the process; 0 while it does not run."""
        return self._program.pid if self._program is not None else 0

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
            for name in API_SERVICES:
                if self._found(f"apiservices/{name}") is not None:
                    self._merge(f"apiservices/{name}", {"spec": {"service": {"port": self.port}}})

    def _run(self) -> None:
        deployment = self._found("deployment/steadyscale", NAMESPACE)
        if deployment is None:
            if self._program is not None:
                self._program.stop()
            self._arguments = None
            return
        pod = deployment["spec"]["template"]["spec"]
        self._mount(pod)
        if (arguments := pod["containers"][0]["args"]) != self._arguments:
            if self._program is not None:
                self._program.stop()
            self._program = self._process(arguments)
            self._program.start()
            self._arguments = arguments

    def _mount(self, pod: dict[str, Any]) -> None:
        """Project the ConfigMaps and Secrets of the pod; paths in files are those on this machine."""
        volumes = {volume["name"]: volume for volume in pod["volumes"] if {"configMap", "secret"} & volume.keys()}
        mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        for name, volume in volumes.items():
            files = self._files(volume)
            for path in (mounts[other] for other in volumes):
                files = {file: text.replace(f"{path}/", f"{self._mounted(path)}/") for file, text in files.items()}
            project(self._mounted(mounts[name]), files)

    def _files(self, volume: dict[str, Any]) -> dict[str, str]:
        if "configMap" in volume:
            found = self._found(f"configmap/{volume['configMap']['name']}", NAMESPACE) or {}
            return found.get("data") or {}
        found = self._found(f"secret/{volume['secret']['secretName']}", NAMESPACE) or {}
        return {name: b64decode(text).decode() for name, text in (found.get("data") or {}).items()}

    def _mounted(self, path: str) -> Path:
        return self.plane.folder / "pod" / path.strip("/")

    def _process(self, arguments: list[str]) -> Program:
        token = self.plane.kubectl("create", "token", "steadyscale", NAMESPACE, "--duration=1h").strip()
        kubeconfig = self.plane.kubeconfig_with_token("steadyscale-pod", token)
        place = (f"--port={self.port}", f"--address={LOOPBACK}", f"--kubeconfig={kubeconfig}")
        default = str(self._mounted(str(DEFAULT_PATH)))
        command = [sys.executable, "-c", IN_POD, default, *arguments, *place]
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
    os.execvp(inside[0], [*inside, "--kubeconfig={kubeconfig}"])
if words[:1] == ["port-forward"]:
    sys.exit(0)
os.execv("{kubectl}", ["kubectl", *words])
"""

DOCKER = """\
#!/bin/sh
# There is no container runtime; tests/manifests tests the Dockerfile without one.
test -e Dockerfile
"""


def kubectl(node: Node) -> str:
    """Return the script that replaces `kubectl` in the commands of a page."""
    facts = {"kubeconfig": node.pod_kubeconfig, "kubectl": node.plane.kubectl_path.resolve()}
    return KUBECTL.format(python=sys.executable, **facts)
