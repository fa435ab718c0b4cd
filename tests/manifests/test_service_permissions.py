"""The roles of the server grant exactly the verbs that it uses.

tests/unit/manifests/test_autoscaler_rbac.py checks the roles of the controller.
"""

import asyncio
import json
from pathlib import Path
from typing import TypeAlias

import aiohttp
import yaml

from adapter import app, process
from adapter.config.loading import ConfigFile
from adapter.demo.environment import API_SERVICE, kubeconfig
from adapter.fakecluster.server import ReceivedRequest
from tests.control_plane.cluster import LOOPBACK, free_port
from tests.fakes.cluster import Cluster
from tests.manifests.rendered import MANIFESTS, Json
from tests.waiting import GIVE_UP

Permission: TypeAlias = tuple[str, str, str]
ROLES = ("steadyscale:registration", "steadyscale:serving-certificate", "steadyscale:external-metrics")
KUBERNETES_ROLES = {
    # granted by system:auth-delegator
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews"),
    # granted by extension-apiserver-authentication-reader
    ("list", "", "configmaps"),
    ("watch", "", "configmaps"),
}
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/orders"
SECRET = "/api/v1/namespaces/steadyscale/secrets/steadyscale-serving-cert"  # noqa: S105


def granted() -> set[Permission]:
    documents = yaml.safe_load_all((MANIFESTS / "base" / "rbac.yaml").read_text())
    rules = [rule for one in documents if one["metadata"]["name"] in ROLES for rule in one.get("rules", ())]
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    } | KUBERNETES_ROLES


def permission(request: ReceivedRequest) -> Permission:
    """Return the verb, group and resource of a request."""
    words = request.path.strip("/").split("/")
    group, rest = ("", words[2:]) if words[0] == "api" else (words[1], words[3:])
    if rest[0] == "namespaces":
        rest = rest[2:]
    return request.verb, group, rest[0] + (f"/{rest[2]}" if len(rest) > 2 else "")


def create_objects(cluster: Cluster) -> None:
    definition: Json = yaml.safe_load((MANIFESTS / "crds" / "externalmetrics.yaml").read_text())
    cluster.install_crd(definition)
    service = {"namespace": "steadyscale", "name": "steadyscale", "port": 443}
    registration = {"metadata": {"name": API_SERVICE.rpartition("/")[2]}, "spec": {"service": service}}
    cluster.create(API_SERVICE.rpartition("/")[0], registration)
    trust = {"metadata": {"name": "extension-apiserver-authentication"}, "data": {}}
    cluster.create("/api/v1/namespaces/kube-system/configmaps", trust)
    orders = {"metadata": {"name": "orders"}, "spec": {"static": [{"value": 7}]}}
    cluster.create("/apis/steadyscale.dev/v1beta1/namespaces/shop/externalmetrics", orders)
    cluster.reviews.tokens["it"] = {"username": "me", "groups": ["system:authenticated"]}
    cluster.reviews.authorize = lambda _: True


def config_file(folder: Path, cluster: Cluster, port: int) -> ConfigFile:
    reached = folder / "kubeconfig"
    reached.write_text(json.dumps(kubeconfig(cluster=cluster.connection.server)))
    tls = {"selfManaged": {"namespace": "steadyscale", "certificateLifetime": "3s", "checkInterval": "200ms"}}
    file = folder / "config.yaml"
    content = {
        "serving": {"address": LOOPBACK, "port": port, "tls": tls},
        "auth": {"kubeconfig": str(reached)},
        "limits": {"shutdownDelay": "0s", "drainTimeout": "1s"},
    }
    file.write_text(json.dumps(content))
    return ConfigFile(file, {})


async def read_a_metric(port: int) -> int:
    async with aiohttp.ClientSession(headers={"Authorization": "Bearer it"}) as session:
        while True:
            try:
                async with session.get(f"https://{LOOPBACK}:{port}{METRIC}", ssl=False) as response:
                    if response.status == 200:
                        return response.status
            except aiohttp.ClientError:
                pass  # not listening yet
            await asyncio.sleep(0.2)


async def wait_for_all_requests(cluster: Cluster) -> None:
    """Wait until the certificate is renewed and the status of the metric is written, which happen last."""
    while not {("update", "", "secrets"), ("patch", "steadyscale.dev", "externalmetrics/status")} <= used(cluster):  # noqa: ASYNC110
        await asyncio.sleep(0.2)


def used(cluster: Cluster) -> set[Permission]:
    return {permission(request) for request in cluster.requests if request.path != "/version"}  # needs no permission


async def test_roles_grant_exactly_the_used_verbs(tmp_path: Path) -> None:
    port, stop = free_port(), asyncio.Event()
    async with Cluster.serving(process.clock) as cluster, asyncio.timeout(GIVE_UP), asyncio.TaskGroup() as tasks:
        create_objects(cluster)
        file = config_file(tmp_path, cluster, port)
        tasks.create_task(app.run(file, file.start(), app.Components(), app.Environment(stop)))
        assert await read_a_metric(port) == 200
        await wait_for_all_requests(cluster)
        stop.set()
    assert used(cluster) == granted()
    secrets = {request.path for request in cluster.requests if "/secrets" in request.path}
    assert secrets == {SECRET, SECRET.rpartition("/")[0]}  # read and update, and create
