"""The roles of the service itself: every verb that it uses is granted, and every verb that is granted is used.

The autoscaler's are held to its use in tests/unit/manifests and tests/controller.
"""

import asyncio
import json
from pathlib import Path
from typing import TypeAlias

import aiohttp
import yaml

from adapter import app
from adapter.config.loading import ConfigFile
from adapter.demo.environment import REGISTRATION
from adapter.fakecluster.cluster import Cluster
from adapter.fakecluster.kubeconfig import kubeconfig
from adapter.fakecluster.server import Asked
from tests.control_plane.cluster import LOOPBACK, free_port
from tests.manifests.rendered import MANIFESTS, Json

Deed: TypeAlias = tuple[str, str, str]
OURS = ("steadyscale:registration", "steadyscale:serving-certificate", "steadyscale:external-metrics")
OF_KUBERNETES = {
    # by system:auth-delegator, which may create these two
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews"),
    # by extension-apiserver-authentication-reader, which may also get
    ("list", "", "configmaps"),
    ("watch", "", "configmaps"),
}
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/orders"
SECRET = "/api/v1/namespaces/steadyscale/secrets/steadyscale-serving-cert"  # noqa: S105


def granted() -> set[Deed]:
    documents = yaml.safe_load_all((MANIFESTS / "base" / "rbac.yaml").read_text())
    rules = [rule for one in documents if one["metadata"]["name"] in OURS for rule in one.get("rules", ())]
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    } | OF_KUBERNETES


def deed(asked: Asked) -> Deed:
    """Say how a role would describe a request."""
    words = asked.path.strip("/").split("/")
    group, rest = ("", words[2:]) if words[0] == "api" else (words[1], words[3:])
    if rest[0] == "namespaces":
        rest = rest[2:]
    return asked.verb, group, rest[0] + (f"/{rest[2]}" if len(rest) > 2 else "")


def furnish(cluster: Cluster) -> None:
    definition: Json = yaml.safe_load((MANIFESTS / "crds" / "externalmetrics.yaml").read_text())
    cluster.define(definition)
    service = {"namespace": "steadyscale", "name": "steadyscale", "port": 443}
    registration = {"metadata": {"name": REGISTRATION.rpartition("/")[2]}, "spec": {"service": service}}
    cluster.create(REGISTRATION.rpartition("/")[0], registration)
    trust = {"metadata": {"name": "extension-apiserver-authentication"}, "data": {}}
    cluster.create("/api/v1/namespaces/kube-system/configmaps", trust)
    orders = {"metadata": {"name": "orders"}, "spec": {"static": [{"value": 7}]}}
    cluster.create("/apis/steadyscale.dev/v1beta1/namespaces/shop/externalmetrics", orders)
    cluster.reviews.tokens["it"] = {"username": "me", "groups": ["system:authenticated"]}
    cluster.reviews.allows = lambda _: True


def configured(folder: Path, cluster: Cluster, port: int) -> ConfigFile:
    reached = folder / "kubeconfig"
    reached.write_text(json.dumps(kubeconfig(cluster=cluster.connection.server)))
    tls = {"selfManaged": {"namespace": "steadyscale", "certificateLifetime": "3s", "checkInterval": "200ms"}}
    file = folder / "config.yaml"
    content = {
        "serving": {"address": LOOPBACK, "port": port, "tls": tls},
        "auth": {"kubeconfig": str(reached)},
        "limits": {"shutdownDelay": "0s", "drain": "1s"},
    }
    file.write_text(json.dumps(content))
    return ConfigFile(file, {})


async def read_a_metric(port: int) -> int:
    async with aiohttp.ClientSession(headers={"Authorization": "Bearer it"}) as session:
        while True:
            try:
                async with session.get(f"https://{LOOPBACK}:{port}{METRIC}", ssl=False) as answer:
                    if answer.status == 200:
                        return answer.status
            except aiohttp.ClientError:
                pass  # not there yet
            await asyncio.sleep(0.2)


async def until_everything_was_needed(cluster: Cluster) -> None:
    """Wait until the certificate was renewed and the metric's status written: what comes later than the rest."""
    while not {("update", "", "secrets"), ("patch", "steadyscale.dev", "externalmetrics/status")} <= used(cluster):  # noqa: ASYNC110
        await asyncio.sleep(0.2)


def used(cluster: Cluster) -> set[Deed]:
    return {deed(asked) for asked in cluster.asked}


async def test_every_verb_that_is_used_is_granted_and_every_verb_that_is_granted_is_used(tmp_path: Path) -> None:
    port, stop = free_port(), asyncio.Event()
    async with Cluster.serving(app.clock) as cluster, asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        furnish(cluster)
        file = configured(tmp_path, cluster, port)
        tasks.create_task(app.run(file, file.start(), app.Components(), app.Environment(stop)))
        assert await read_a_metric(port) == 200
        await until_everything_was_needed(cluster)
        stop.set()
    assert used(cluster) == granted()
    secrets = {asked.path for asked in cluster.asked if "/secrets" in asked.path}
    assert secrets == {SECRET, SECRET.rpartition("/")[0]}  # the one to read and renew, and where it is created
