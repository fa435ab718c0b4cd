"""The autoscaler's RBAC roles grant exactly the permissions that it uses."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from adapter.fakecluster.cluster import Cluster
from adapter.fakecluster.server import ReceivedRequest
from autoscaler.kube.autoscalers import StatusWriter, hpa_informer, podautoscaler_informer
from autoscaler.kube.client import KubeClient
from autoscaler.kube.discovery import Discovery
from autoscaler.kube.events import EventRecorder
from autoscaler.kube.informer import Informer
from autoscaler.kube.lease import LeaderElector
from autoscaler.kube.metrics_apis import MetricsApis
from autoscaler.kube.pods import PodLister
from autoscaler.kube.scale import ScaleClient
from autoscaler.kube.targets import TargetInformers
from autoscaler.settings import ControllerOptions
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
OURS = ("steadyscale:autoscaler", "steadyscale:leader-election")
SCALERS = "/apis/steadyscale.dev/v1beta1/namespaces/default/podautoscalers"
SOON = timedelta(seconds=5)
NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Permission(NamedTuple):
    verb: str
    group: str
    resource: str


def granted() -> set[Permission]:
    """Return the permissions of the roles."""
    documents = yaml.safe_load_all(ROLES.read_text())
    rules = [rule for role in documents if role["metadata"]["name"] in OURS for rule in role.get("rules", ())]
    return {
        Permission(verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def covers(grant: Permission, used: Permission) -> bool:
    resource = "*/scale" if grant.resource == "*/scale" and used.resource.endswith("/scale") else used.resource
    return grant.verb == used.verb and grant.group in {"*", used.group} and grant.resource in {"*", resource}


def permission_of(request: ReceivedRequest) -> Permission | None:
    """Return the permission for a request; None for discovery, which needs none."""
    segments = request.path.strip("/").split("/")
    group, rest = ("", segments[2:]) if segments[0] == "api" else (segments[1], segments[3:])
    if not rest:
        return None
    if rest[0] == "namespaces":
        rest = rest[2:]
    lists = {"metrics.k8s.io": "list", "external.metrics.k8s.io": "list"}
    subresource = f"/{rest[2]}" if len(rest) > 2 else ""
    return Permission(lists.get(group, request.verb), group, rest[0] + subresource)


def set_up(cluster: Cluster) -> None:
    cluster.install_crd(definition())
    cluster.install_crd(widget_definition())
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "it"}
    cluster.create(SCALERS, {"metadata": {"name": "it"}, "spec": {"scaleTargetRef": target, "maxReplicas": 5}})
    for plural in ("deployments", "replicasets", "statefulsets"):
        cluster.create(f"/apis/apps/v1/namespaces/default/{plural}", deployment("it", 1))
    cluster.create("/apis/example.dev/v1/namespaces/default/widgets", widget("it", size=1))
    cluster.metrics.usage["default/it-00000"] = {"cpu": "1"}
    cluster.metrics.pod_metrics["hits", "default/it-00000"] = "1"
    cluster.metrics.object_metrics["hits", "default/deployments.apps/it"] = "1"
    cluster.metrics.external["default", "queue"] = ["1"]


async def scale_everything(client: KubeClient, cluster: Cluster) -> None:
    async with TargetInformers.open(client) as targets, PodLister.open(client) as pods:
        scales = ScaleClient(client, Discovery(client), targets)
        for kind in ("Deployment", "ReplicaSet", "StatefulSet"):
            await scales.read(autoscaler_of(kind, "it"))
        cluster.faults.forbid("list", "widgets")  # a custom target that may not be watched is fetched
        await scales.read(autoscaler_of("Widget", "it", "example.dev/v1"))
        await scales.write(autoscaler_of("Deployment", "it"), 2)
        await pods.list("default", parse("app=it"))


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


async def write_statuses_and_events(client: KubeClient) -> None:
    scalers, hpas = podautoscaler_informer(client), hpa_informer(client)
    informers: tuple[Informer[Any], ...] = (scalers, hpas)
    events = EventRecorder(client, lambda: NOW)
    running = [asyncio.create_task(run()) for run in (scalers.run, hpas.run, events.run)]
    for informer in informers:
        assert await informer.wait_for_sync(SOON)
    known = scalers.get("default/it")
    assert known is not None
    await StatusWriter(client, scalers).write(known, Status(3))
    for _ in range(2):
        events.record(known, Event("Normal", "SuccessfulRescale", "New size: 3"))
    await events.flush()
    for task in running:
        task.cancel()


async def lead_once(client: KubeClient) -> None:
    options = ControllerOptions()
    for identity in ("first", "second"):
        elector = LeaderElector(
            client, namespace=options.lease_namespace, name=options.lease_name, identity=identity, clock=lambda: NOW
        )

        async def work() -> None:
            await asyncio.sleep(0)

        await elector.run(work)


def watches(cluster: Cluster) -> Iterator[Permission]:
    """Yield the watch permission for each list; the watch may not have started before the test ended."""
    for request in cluster.requests:
        used = permission_of(request)
        if used is not None and used.verb == "list" and not used.group.endswith("metrics.k8s.io"):
            yield used._replace(verb="watch")


async def test_roles_grant_exactly_the_used_permissions() -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        set_up(cluster)
        await scale_everything(client, cluster)
        await read_every_metric(client)
        await write_statuses_and_events(client)
        await lead_once(client)
        requested = {*map(permission_of, cluster.requests), *watches(cluster)}
    used = {one for one in requested if one and not (one.group == "example.dev" and one.verb in {"list", "watch"})}
    assert {permission for permission in used if not any(covers(grant, permission) for grant in granted())} == set()
    assert {grant for grant in granted() if not any(covers(grant, permission) for permission in used)} == set()


def test_role_allows_writing_only_the_configured_lease() -> None:
    roles = {role["metadata"]["name"]: role for role in yaml.safe_load_all(ROLES.read_text()) if role["kind"] == "Role"}
    named = [rule["resourceNames"] for rule in roles["steadyscale:leader-election"]["rules"] if "resourceNames" in rule]
    assert named == [[ControllerOptions().lease_name]]
    assert roles["steadyscale:leader-election"]["metadata"]["namespace"] == ControllerOptions().lease_namespace
