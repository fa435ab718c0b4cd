"""Metrics as the cluster serves them: how they are asked for, what is read, and the words when that fails."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adapter.fakecluster.cluster import Cluster
from autoscaler.kube.discovery import Discovery
from autoscaler.kube.metric_items import decode_pod_value, decode_usage
from autoscaler.kube.metrics_apis import MetricsApis
from autoscaler.types.observation import (
    BadSelector,
    ExternalReading,
    FailureClass,
    ObjectReading,
    PodReading,
    Reading,
    UnavailableReading,
)
from autoscaler.types.spec import (
    ContainerResourceSource,
    ExternalSource,
    Metric,
    MetricIdentifier,
    ObjectReference,
    ObjectSource,
    PodsSource,
    ResourceSource,
)
from autoscaler.values.selector import LabelSelector, LabelSelectorRequirement, parse
from tests.contract.objects import DEPLOYMENTS, deployment

POD = "default/web-00000"
CPU = Metric("Resource", resource=ResourceSource("cpu"))
HITS = Metric("Pods", pods=PodsSource(MetricIdentifier("hits")))


def external(name: str, selector: LabelSelector | None = None) -> Metric:
    return Metric("External", external=ExternalSource(MetricIdentifier(name, selector)))


def of_object(kind: str, name: str, api_version: str) -> Metric:
    source = ObjectSource(ObjectReference(kind, name, api_version), metric=MetricIdentifier("hits"))
    return Metric("Object", object=source)


@asynccontextmanager
async def cluster_with_a_pod() -> AsyncIterator[Cluster]:
    async with Cluster.serving() as cluster:
        cluster.create(DEPLOYMENTS, deployment("web", 1))
        cluster.workloads.switch_on()
        yield cluster


async def read(cluster: Cluster, metric: Metric) -> Reading:
    async with cluster.client() as client:
        return await MetricsApis(client, Discovery(client)).read("default", metric, parse("app=web"))


async def test_a_resource_is_the_sum_of_a_pods_containers() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.usage[POD] = {"cpu": "250m"}
        reading = await read(cluster, CPU)
        assert isinstance(reading, PodReading)
        assert {pod: one.milli for pod, one in reading.samples.items()} == {"web-00000": 250}
        assert cluster.asked[-1].query == {"labelSelector": "app=web"}


async def test_a_resource_of_one_container_leaves_out_pods_without_it() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.usage[POD] = {"cpu": "250m"}
        sidecar = Metric("ContainerResource", container_resource=ContainerResourceSource("cpu", container="sidecar"))
        reading = await read(cluster, sidecar)
        assert isinstance(reading, PodReading)
        assert reading.samples == {}


async def test_a_custom_metric_of_pods_has_a_number_for_each() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.of_pods["hits", POD] = "7"
        reading = await read(cluster, HITS)
        assert isinstance(reading, PodReading)
        assert {pod: one.milli for pod, one in reading.samples.items()} == {"web-00000": 7000}
        assert cluster.asked[-1].path == "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/hits"


@pytest.mark.parametrize(
    ("metric", "thing"),
    [
        pytest.param(of_object("Deployment", "web", "apps/v1"), "default/deployments.apps/web", id="of a group"),
        pytest.param(of_object("Service", "web", "v1"), "default/services/web", id="of the core"),
        pytest.param(of_object("Namespace", "ignored", "v1"), "default/metrics/hits", id="of the namespace"),
    ],
)
async def test_a_custom_metric_of_an_object_is_one_number(metric: Metric, thing: str) -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.of_objects["hits", thing] = "1500m"
        reading = await read(cluster, metric)
        if thing.endswith("metrics/hits"):
            assert cluster.asked[-1].path.endswith("/namespaces/default/metrics/hits")
        else:
            assert isinstance(reading, ObjectReading)
            assert reading.milli == 1500


async def test_an_external_metric_is_asked_for_in_lower_case_with_its_selector_sorted() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.external["default", "myqueue"] = ["3", "500m"]
        selector = LabelSelector({"b": "2", "a": "1"}, (LabelSelectorRequirement("e", "Exists"),))
        reading = await read(cluster, external("MyQueue", selector))
        assert isinstance(reading, ExternalReading)
        assert reading.milli == (3000, 500)
        assert cluster.asked[-1].path.endswith("/namespaces/default/myqueue")
        assert cluster.asked[-1].query == {"labelSelector": "a=1,b=2,e"}


async def test_a_selector_that_makes_no_sense_is_the_users_fault_and_nobody_is_asked() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.asked.clear()
        wrong = LabelSelector({}, (LabelSelectorRequirement("a", "Equals", ("1",)),))
        assert await read(cluster, external("queue", wrong)) == BadSelector(
            '"Equals" is not a valid label selector operator'
        )
        assert cluster.asked == []


@pytest.mark.parametrize(
    ("metric", "message", "failure"),
    [
        pytest.param(
            CPU,
            "unable to fetch metrics from resource metrics API: the server could not find the requested resource",
            FailureClass.UNKNOWN_METRIC,
            id="no resource metrics",
        ),
        pytest.param(
            HITS,
            "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered",
            FailureClass.API_UNAVAILABLE,
            id="no custom metrics",
        ),
        pytest.param(
            of_object("Thing", "web", "nobody.example/v1"),
            "unable to fetch metrics from custom metrics API: unable to map kind Thing.nobody.example to resource:"
            ' no matches for kind "Thing" in group "nobody.example"',
            FailureClass.API_UNAVAILABLE,
            id="an unknown kind",
        ),
        pytest.param(
            external("queue"),
            "unable to fetch metrics from external metrics API: the server could not find the requested resource",
            FailureClass.UNKNOWN_METRIC,
            id="no external metrics",
        ),
    ],
)
async def test_who_is_not_there_cannot_be_asked(metric: Metric, message: str, failure: FailureClass) -> None:
    async with cluster_with_a_pod() as cluster:
        assert await read(cluster, metric) == UnavailableReading(message, failure)


async def test_no_series_is_an_error_and_no_zero() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.external["default", "queue"] = []
        nothing = UnavailableReading("no metrics returned from external metrics API", FailureClass.NO_SERIES)
        assert await read(cluster, external("queue")) == nothing


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (403, FailureClass.UNAUTHORIZED),
        (503, FailureClass.API_UNAVAILABLE),
        (429, FailureClass.API_UNAVAILABLE),
        (404, FailureClass.UNKNOWN_METRIC),
    ],
)
async def test_a_refusal_has_its_class(code: int, failure: FailureClass) -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.refuse_next(code)
        refused = "unable to fetch metrics from external metrics API: refused on request"
        assert await read(cluster, external("queue")) == UnavailableReading(refused, failure)


async def test_a_server_that_is_down_is_unreachable() -> None:
    async with cluster_with_a_pod() as cluster:
        await cluster.go_down()
        reading = await read(cluster, external("queue"))
        assert isinstance(reading, UnavailableReading)
        assert reading.failure is FailureClass.UNREACHABLE


async def test_a_number_that_is_none_is_said_to_be_none() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.external["default", "queue"] = ["many"]
        reading = await read(cluster, external("queue"))
        assert isinstance(reading, UnavailableReading)
        assert reading.failure is FailureClass.NOT_A_NUMBER


@pytest.mark.parametrize(
    ("window", "seconds"), [("30s", 30), ("1m0s", 60), ("1m30.5s", 90.5), ("1h", 3600), ("250ms", 0.25), ("", 0)]
)
def test_a_window_is_read_as_go_prints_it(window: str, seconds: float) -> None:
    item: Any = {"metadata": {"name": "p"}, "window": window, "containers": []}
    assert decode_usage(item).window.total_seconds() == seconds


@pytest.mark.parametrize("key", ["window", "windowSeconds"])
def test_both_versions_of_custom_metrics_have_a_window(key: str) -> None:
    item: Any = {"describedObject": {"name": "p"}, "value": "1", key: 15}
    window = decode_pod_value(item).window
    assert window is not None
    assert window.total_seconds() == 15
