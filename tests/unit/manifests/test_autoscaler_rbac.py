"""The autoscaler's roles: every verb that it uses is granted, and every verb that is granted is used."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from adapter.fakecluster.cluster import Cluster
from adapter.fakecluster.server import Asked
from autoscaler.kube.autoscalers import StatusWriter, watch_native, watch_podautoscalers
from autoscaler.kube.client import KubeClient
from autoscaler.kube.discovery import Discovery
from autoscaler.kube.events import EventRecorder
from autoscaler.kube.lease import Lease
from autoscaler.kube.metrics_apis import MetricsApis
from autoscaler.kube.pods import Pods
from autoscaler.kube.scale import ScaleClient
from autoscaler.kube.store import Store
from autoscaler.kube.targets import Targets
from autoscaler.settings import Operation
from autoscaler.types.decision import Event
from autoscaler.types.spec import (
    ExternalSource,
    Metric,
    MetricIdentifier,
    ObjectReference,
    ObjectSource,
    PodsSource,
    ResourceSource,
)
from autoscaler.types.status import Status
from autoscaler.values.selector import parse
from tests.contract.objects import autoscaler_of, deployment, widget, widget_definition
from tools.crd.definition import definition

ROLES = Path(__file__).parents[3] / "manifests" / "base" / "autoscaler-rbac.yaml"
OURS = ("steadyscale:autoscaler", "steadyscale:leadership")
SCALERS = "/apis/steadyscale.dev/v1beta1/namespaces/default/podautoscalers"
SOON = timedelta(seconds=5)
NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Deed(NamedTuple):
    verb: str
    group: str
    resource: str


def granted() -> set[Deed]:
    """List what the roles grant."""
    documents = yaml.safe_load_all(ROLES.read_text())
    rules = [rule for one in documents if one["metadata"]["name"] in OURS for rule in one.get("rules", ())]
    return {
        Deed(verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def covers(grant: Deed, deed: Deed) -> bool:
    resource = "*/scale" if grant.resource == "*/scale" and deed.resource.endswith("/scale") else deed.resource
    return grant.verb == deed.verb and grant.group in {"*", deed.group} and grant.resource in {"*", resource}


def deed_of(asked: Asked) -> Deed | None:
    """Say how a role would describe a request; None for discovery, which everyone may do."""
    words = asked.path.strip("/").split("/")
    group, rest = ("", words[2:]) if words[0] == "api" else (words[1], words[3:])
    if not rest:
        return None
    if rest[0] == "namespaces":
        rest = rest[2:]
    lists = {"metrics.k8s.io": "list", "external.metrics.k8s.io": "list"}
    subresource = f"/{rest[2]}" if len(rest) > 2 else ""
    return Deed(lists.get(group, asked.verb), group, rest[0] + subresource)


def set_up(cluster: Cluster) -> None:
    cluster.define(definition())
    cluster.define(widget_definition())
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "it"}
    cluster.create(SCALERS, {"metadata": {"name": "it"}, "spec": {"scaleTargetRef": target, "maxReplicas": 5}})
    for plural in ("deployments", "replicasets", "statefulsets"):
        cluster.create(f"/apis/apps/v1/namespaces/default/{plural}", deployment("it", 1))
    cluster.create("/apis/example.dev/v1/namespaces/default/widgets", widget("it", size=1))
    cluster.metrics.usage["default/it-00000"] = {"cpu": "1"}
    cluster.metrics.of_pods["hits", "default/it-00000"] = "1"
    cluster.metrics.of_objects["hits", "default/deployments.apps/it"] = "1"
    cluster.metrics.external["default", "queue"] = ["1"]


async def scale_everything(client: KubeClient, cluster: Cluster) -> None:
    async with Targets.open(client) as targets, Pods.open(client) as pods:
        scales = ScaleClient(client, Discovery(client), targets)
        for kind in ("Deployment", "ReplicaSet", "StatefulSet"):
            await scales.read(autoscaler_of(kind, "it"))
        cluster.weather.forbid("list", "widgets")  # a custom target that may not be watched is fetched
        await scales.read(autoscaler_of("Widget", "it", "example.dev/v1"))
        await scales.write(autoscaler_of("Deployment", "it"), 2)
        await pods.of("default", parse("app=it"))


async def read_every_metric(client: KubeClient) -> None:
    apis, pods, hits = MetricsApis(client, Discovery(client)), parse("app=it"), MetricIdentifier("hits")
    described = ObjectReference("Deployment", "it", "apps/v1")
    for metric in (
        Metric("Resource", resource=ResourceSource("cpu")),
        Metric("Pods", pods=PodsSource(hits)),
        Metric("Object", object=ObjectSource(described, metric=hits)),
        Metric("External", external=ExternalSource(MetricIdentifier("queue"))),
    ):
        await apis.read("default", metric, pods)


async def say_everything(client: KubeClient) -> None:
    scalers, native = watch_podautoscalers(client), watch_native(client)
    stores: tuple[Store[Any], ...] = (scalers, native)
    events = EventRecorder(client, lambda: NOW)
    running = [asyncio.create_task(one.run()) for one in (*stores, events)]
    for store in stores:
        assert await store.settled(SOON)
    known = scalers.get("default/it")
    assert known is not None
    await StatusWriter(client, scalers).write(known, Status(3))
    for _ in range(2):
        events.tell(known, Event("Normal", "SuccessfulRescale", "New size: 3"))
    await events.flush()
    for task in running:
        task.cancel()


async def lead_once(client: KubeClient) -> None:
    given = Operation()
    for identity in ("first", "second"):
        lease = Lease(
            client, namespace=given.lease_namespace, name=given.lease_name, identity=identity, clock=lambda: NOW
        )

        async def work() -> None:
            await asyncio.sleep(0)

        await lease.lead(work)


def watches(cluster: Cluster) -> Iterator[Deed]:
    """Give the watch that goes with each list, whether or not it was begun before the test was over."""
    for asked in cluster.asked:
        deed = deed_of(asked)
        if deed is not None and deed.verb == "list" and not deed.group.endswith("metrics.k8s.io"):
            yield deed._replace(verb="watch")


async def test_every_verb_that_is_used_is_granted_and_every_verb_that_is_granted_is_used() -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        set_up(cluster)
        await scale_everything(client, cluster)
        await read_every_metric(client)
        await say_everything(client)
        await lead_once(client)
        used = {deed for asked in cluster.asked if (deed := deed_of(asked)) is not None} | set(watches(cluster))
    used = {deed for deed in used if not (deed.group == "example.dev" and deed.verb in {"list", "watch"})}
    assert {deed for deed in used if not any(covers(grant, deed) for grant in granted())} == set()
    assert {grant for grant in granted() if not any(covers(grant, deed) for deed in used)} == set()


def test_the_lease_that_may_be_written_is_the_one_that_is() -> None:
    roles = {one["metadata"]["name"]: one for one in yaml.safe_load_all(ROLES.read_text()) if one["kind"] == "Role"}
    named = [rule["resourceNames"] for rule in roles["steadyscale:leadership"]["rules"] if "resourceNames" in rule]
    assert named == [[Operation().lease_name]]
    assert roles["steadyscale:leadership"]["metadata"]["namespace"] == Operation().lease_namespace
