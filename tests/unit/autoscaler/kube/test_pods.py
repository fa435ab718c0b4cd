"""Pods: what is kept of one, and how few requests it takes to know them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from adapter.fakecluster.cluster import Cluster
from autoscaler.kube.errors import Forbidden
from autoscaler.kube.pod import decode_pod
from autoscaler.kube.pods import Pods
from autoscaler.types.observation import Container, Pod
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import parse
from tests.contract.objects import deployment, eventually

EVERYTHING = parse("")


@asynccontextmanager
async def stage() -> AsyncIterator[tuple[Cluster, Pods]]:
    async with Cluster.serving() as cluster, cluster.client() as client, Pods.open(client) as pods:
        yield cluster, pods


def make_pod(cluster: Cluster, namespace: str, name: str, **labels: str) -> None:
    cluster.create(f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": name, "labels": labels}})


def listed(cluster: Cluster) -> list[str]:
    return [one.path for one in cluster.asked if one.verb == "list"]


async def names(pods: Pods, namespace: str, selector: str) -> list[str]:
    return [pod.name for pod in await pods.of(namespace, parse(selector))]


async def test_a_selector_finds_its_pods_in_its_namespace() -> None:
    async with stage() as (cluster, pods):
        make_pod(cluster, "shop", "web-1", app="web")
        make_pod(cluster, "shop", "api-1", app="api")
        make_pod(cluster, "bank", "web-1", app="web")
        assert await names(pods, "shop", "app=web") == ["web-1"]
        assert await names(pods, "shop", "app") == ["api-1", "web-1"]
        assert listed(cluster) == ["/api/v1/namespaces/shop/pods"]


async def test_nothing_is_watched_before_somebody_asks() -> None:
    async with stage() as (cluster, _):
        assert cluster.asked == []


async def test_asking_again_gives_the_same_pods_until_one_changes() -> None:
    async with stage() as (cluster, pods):
        make_pod(cluster, "shop", "web-1", app="web")
        first = await pods.of("shop", EVERYTHING)
        assert await pods.of("shop", EVERYTHING) is first
        make_pod(cluster, "shop", "web-2", app="web")

        async def sees_both() -> bool:
            return await names(pods, "shop", "") == ["web-1", "web-2"]

        await eventually(sees_both)


async def test_a_pod_that_went_is_gone() -> None:
    async with stage() as (cluster, pods):
        make_pod(cluster, "shop", "web-1")
        assert await names(pods, "shop", "") == ["web-1"]
        cluster.delete("/api/v1/namespaces/shop/pods/web-1")

        async def is_gone() -> bool:
            return await names(pods, "shop", "") == []

        await eventually(is_gone)


async def test_a_pod_that_went_while_nobody_listened_is_gone() -> None:
    async with stage() as (cluster, pods):
        make_pod(cluster, "shop", "web-1")
        make_pod(cluster, "shop", "web-2")
        assert await names(pods, "shop", "") == ["web-1", "web-2"]
        cluster.weather.forbid("watch", "pods")
        cluster.hang_up()
        cluster.delete("/api/v1/namespaces/shop/pods/web-1")
        cluster.expire_watches()
        cluster.weather.permit("watch", "pods")

        async def is_gone() -> bool:
            return await names(pods, "shop", "") == ["web-2"]

        await eventually(is_gone)


async def test_many_namespaces_are_one_watch() -> None:
    async with stage() as (cluster, pods):
        for number in range(20):
            make_pod(cluster, f"team-{number}", "web-1")
        for number in range(20):
            assert await names(pods, f"team-{number}", "") == ["web-1"]
        assert await names(pods, "team-0", "") == ["web-1"]
        assert listed(cluster)[16:] == ["/api/v1/pods"]


async def test_pods_that_may_not_be_listed_are_an_error_that_says_so() -> None:
    async with stage() as (cluster, pods):
        cluster.weather.forbid("list", "pods")
        with pytest.raises(Forbidden, match="cannot list"):
            await pods.of("shop", EVERYTHING)


async def test_the_pods_of_a_deployment_are_ready_and_started() -> None:
    async with stage() as (cluster, pods):
        cluster.create("/apis/apps/v1/namespaces/shop/deployments", deployment("web", 2))

        async def two_are_ready() -> bool:
            return [(pod.phase, pod.ready) for pod in await pods.of("shop", parse("app=web"))] == [
                ("Running", "True")
            ] * 2

        await eventually(two_are_ready)


def test_what_the_arithmetic_needs_of_a_pod_is_kept() -> None:
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


def test_a_pod_that_has_hardly_begun_is_a_pod() -> None:
    assert decode_pod({"metadata": {"name": "web-1"}}) == Pod("web-1", "", {})
