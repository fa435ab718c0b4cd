"""The pod lister: stored fields, and the number of requests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from autoscaler.kube.errors import Forbidden
from autoscaler.kube.pods import PodLister, decode_pod
from autoscaler.types.observation import Container, Pod
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import parse
from tests.contract.objects import deployment, eventually
from tests.fakes.cluster import Cluster

EVERYTHING = parse("")


@asynccontextmanager
async def running_pod_lister() -> AsyncIterator[tuple[Cluster, PodLister]]:
    async with Cluster.serving() as cluster, cluster.client() as client, PodLister.open(client) as pods:
        yield cluster, pods


def make_pod(cluster: Cluster, namespace: str, name: str, **labels: str) -> None:
    cluster.create(f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": name, "labels": labels}})


def listed(cluster: Cluster) -> list[str]:
    return [request.path for request in cluster.requests if request.verb == "list"]


async def names(pods: PodLister, namespace: str, selector: str) -> list[str]:
    return [pod.name for pod in await pods.list(namespace, parse(selector))]


async def test_pods_are_selected_within_the_namespace() -> None:
    async with running_pod_lister() as (cluster, pods):
        make_pod(cluster, "shop", "web-1", app="web")
        make_pod(cluster, "shop", "api-1", app="api")
        make_pod(cluster, "bank", "web-1", app="web")
        assert await names(pods, "shop", "app=web") == ["web-1"]
        assert await names(pods, "shop", "app") == ["api-1", "web-1"]
        assert listed(cluster) == ["/api/v1/namespaces/shop/pods"]


async def test_pods_are_not_watched_before_the_first_list() -> None:
    async with running_pod_lister() as (cluster, _):
        assert cluster.requests == []


async def test_result_is_cached_until_a_pod_changes() -> None:
    async with running_pod_lister() as (cluster, pods):
        make_pod(cluster, "shop", "web-1", app="web")
        first = await pods.list("shop", EVERYTHING)
        assert await pods.list("shop", EVERYTHING) is first
        make_pod(cluster, "shop", "web-2", app="web")

        async def lists_both() -> bool:
            return await names(pods, "shop", "") == ["web-1", "web-2"]

        await eventually(lists_both)


async def test_deleted_pod_is_not_listed() -> None:
    async with running_pod_lister() as (cluster, pods):
        make_pod(cluster, "shop", "web-1")
        assert await names(pods, "shop", "") == ["web-1"]
        cluster.delete("/api/v1/namespaces/shop/pods/web-1")

        async def is_gone() -> bool:
            return await names(pods, "shop", "") == []

        await eventually(is_gone)


async def test_pod_deleted_while_the_watch_was_down_is_not_listed() -> None:
    async with running_pod_lister() as (cluster, pods):
        make_pod(cluster, "shop", "web-1")
        make_pod(cluster, "shop", "web-2")
        assert await names(pods, "shop", "") == ["web-1", "web-2"]
        cluster.faults.forbid("watch", "pods")
        cluster.close_watches()
        cluster.delete("/api/v1/namespaces/shop/pods/web-1")
        cluster.expire_watches()
        cluster.faults.allow("watch", "pods")

        async def is_gone() -> bool:
            return await names(pods, "shop", "") == ["web-2"]

        await eventually(is_gone)


async def test_many_namespaces_share_one_informer_for_the_cluster() -> None:
    async with running_pod_lister() as (cluster, pods):
        for number in range(20):
            make_pod(cluster, f"team-{number}", "web-1")
        for number in range(20):
            assert await names(pods, f"team-{number}", "") == ["web-1"]
        assert await names(pods, "team-0", "") == ["web-1"]
        assert listed(cluster)[16:] == ["/api/v1/pods"]


async def test_missing_permission_to_list_pods_raises_forbidden() -> None:
    async with running_pod_lister() as (cluster, pods):
        cluster.faults.forbid("list", "pods")
        with pytest.raises(Forbidden, match="cannot list"):
            await pods.list("shop", EVERYTHING)


async def test_pods_of_a_deployment_are_listed_as_ready() -> None:
    async with running_pod_lister() as (cluster, pods):
        cluster.create("/apis/apps/v1/namespaces/shop/deployments", deployment("web", 2))

        async def two_are_ready() -> bool:
            return [(pod.phase, pod.ready) for pod in await pods.list("shop", parse("app=web"))] == [
                ("Running", "True")
            ] * 2

        await eventually(two_are_ready)


def test_decoded_pod_has_the_fields_of_the_algorithm() -> None:
    content = {
        "metadata": {"name": "web-1", "labels": {"app": "web"}, "deletionTimestamp": "2026-03-01T12:01:00Z"},
        "spec": {
            "containers": [{"name": "app", "image": "it", "resources": {"requests": {"cpu": "500m"}}}],
            "initContainers": [{"name": "side", "restartPolicy": "Always"}],
            "resources": {"requests": {"cpu": "1"}},
            "overhead": {"cpu": "10m"},
        },
        "status": {
            "phase": "Running",
            "startTime": "2026-03-01T12:00:00Z",
            "conditions": [
                {"type": "Initialized", "status": "True"},
                {"type": "Ready", "status": "False", "lastTransitionTime": "2026-03-01T12:00:30Z"},
            ],
        },
    }
    assert decode_pod(content) == Pod(
        name="web-1",
        phase="Running",
        labels={"app": "web"},
        containers=(Container("app", {"cpu": Quantity.parse("500m")}),),
        init_containers=(Container("side", {}, "Always"),),
        requests={"cpu": Quantity.parse("1")},
        overhead={"cpu": Quantity.parse("10m")},
        ready="False",
        ready_since=datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC),
        started=datetime(2026, 3, 1, 12, tzinfo=UTC),
        terminating=True,
    )


def test_pod_without_spec_and_status_is_decoded() -> None:
    assert decode_pod({"metadata": {"name": "web-1"}}) == Pod("web-1", "", {})
