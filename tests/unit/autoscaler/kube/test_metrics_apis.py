"""Requests to the metrics APIs, their readings, and error messages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from autoscaler.kube.discovery import Discovery
from autoscaler.kube.metrics_apis import MetricsApis
from autoscaler.readings import decode_pod_value, decode_usage
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
from tests.fakes.cluster import Cluster

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
        cluster.workloads.resume()
        yield cluster


async def read(cluster: Cluster, metric: Metric) -> Reading:
    async with cluster.client() as client:
        return await MetricsApis(client, Discovery(client)).read("default", metric, parse("app=web"))


async def test_resource_usage_is_the_sum_of_all_containers() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.usage[POD] = {"cpu": "250m"}
        reading = await read(cluster, CPU)
        assert isinstance(reading, PodReading)
        assert {pod: sample.milli for pod, sample in reading.samples.items()} == {"web-00000": 250}
        assert cluster.requests[-1].query == {"labelSelector": "app=web"}


async def test_container_resource_omits_pods_without_the_container() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.usage[POD] = {"cpu": "250m"}
        sidecar = Metric("ContainerResource", container_resource=ContainerResourceSource("cpu", container="sidecar"))
        reading = await read(cluster, sidecar)
        assert isinstance(reading, PodReading)
        assert reading.samples == {}


async def test_pods_metric_has_a_value_per_pod() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.pod_metrics["hits", POD] = "7"
        reading = await read(cluster, HITS)
        assert isinstance(reading, PodReading)
        assert {pod: sample.milli for pod, sample in reading.samples.items()} == {"web-00000": 7000}
        assert cluster.requests[-1].path == "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/hits"


@pytest.mark.parametrize(
    ("metric", "described"),
    [
        pytest.param(of_object("Deployment", "web", "apps/v1"), "default/deployments.apps/web", id="object of a group"),
        pytest.param(of_object("Service", "web", "v1"), "default/services/web", id="object of the core group"),
        pytest.param(of_object("Namespace", "ignored", "v1"), "default/metrics/hits", id="namespace"),
    ],
)
async def test_object_metric_has_one_value(metric: Metric, described: str) -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.object_metrics["hits", described] = "1500m"
        reading = await read(cluster, metric)
        if described.endswith("metrics/hits"):
            assert cluster.requests[-1].path.endswith("/namespaces/default/metrics/hits")
        else:
            assert isinstance(reading, ObjectReading)
            assert reading.milli == 1500


async def test_external_metric_request_has_lower_case_name_and_sorted_selector() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.external["default", "myqueue"] = ["3", "500m"]
        selector = LabelSelector({"b": "2", "a": "1"}, (LabelSelectorRequirement("e", "Exists"),))
        reading = await read(cluster, external("MyQueue", selector))
        assert isinstance(reading, ExternalReading)
        assert reading.milli == (3000, 500)
        assert cluster.requests[-1].path.endswith("/namespaces/default/myqueue")
        assert cluster.requests[-1].query == {"labelSelector": "a=1,b=2,e"}


async def test_invalid_selector_is_reported_without_a_request() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.requests.clear()
        invalid = LabelSelector({}, (LabelSelectorRequirement("a", "Equals", ("1",)),))
        assert await read(cluster, external("queue", invalid)) == BadSelector(
            '"Equals" is not a valid label selector operator'
        )
        assert cluster.requests == []


@pytest.mark.parametrize(
    ("metric", "message", "failure"),
    [
        pytest.param(
            CPU,
            "unable to fetch metrics from resource metrics API: the server could not find the requested resource",
            FailureClass.UNKNOWN_METRIC,
            id="resource metrics API missing",
        ),
        pytest.param(
            HITS,
            "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered",
            FailureClass.API_UNAVAILABLE,
            id="custom metrics API missing",
        ),
        pytest.param(
            of_object("Thing", "web", "nobody.example/v1"),
            "unable to fetch metrics from custom metrics API: unable to map kind Thing.nobody.example to resource:"
            ' no matches for kind "Thing" in group "nobody.example"',
            FailureClass.API_UNAVAILABLE,
            id="unknown kind",
        ),
        pytest.param(
            external("queue"),
            "unable to fetch metrics from external metrics API: the server could not find the requested resource",
            FailureClass.UNKNOWN_METRIC,
            id="external metrics API missing",
        ),
    ],
)
async def test_missing_api_or_kind_makes_the_metric_unavailable(
    metric: Metric, message: str, failure: FailureClass
) -> None:
    async with cluster_with_a_pod() as cluster:
        assert await read(cluster, metric) == UnavailableReading(message, failure)


async def test_no_series_is_an_error_instead_of_zero() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.external["default", "queue"] = []
        expected = UnavailableReading("no metrics returned from external metrics API", FailureClass.NO_SERIES)
        assert await read(cluster, external("queue")) == expected


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (403, FailureClass.UNAUTHORIZED),
        (503, FailureClass.API_UNAVAILABLE),
        (429, FailureClass.API_UNAVAILABLE),
        (404, FailureClass.UNKNOWN_METRIC),
    ],
)
async def test_error_code_determines_the_failure_class(code: int, failure: FailureClass) -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.faults.fail_next(code)
        message = "unable to fetch metrics from external metrics API: injected fault"
        assert await read(cluster, external("queue")) == UnavailableReading(message, failure)


async def test_stopped_server_is_unreachable() -> None:
    async with cluster_with_a_pod() as cluster:
        await cluster.stop()
        reading = await read(cluster, external("queue"))
        assert isinstance(reading, UnavailableReading)
        assert reading.failure is FailureClass.UNREACHABLE


async def test_invalid_quantity_has_failure_class_not_a_number() -> None:
    async with cluster_with_a_pod() as cluster:
        cluster.metrics.external["default", "queue"] = ["many"]
        reading = await read(cluster, external("queue"))
        assert isinstance(reading, UnavailableReading)
        assert reading.failure is FailureClass.NOT_A_NUMBER


@pytest.mark.parametrize(
    ("window", "seconds"), [("30s", 30), ("1m0s", 60), ("1m30.5s", 90.5), ("1h", 3600), ("250ms", 0.25), ("", 0)]
)
def test_window_is_parsed_as_a_go_duration(window: str, seconds: float) -> None:
    item: Any = {"metadata": {"name": "p"}, "window": window, "containers": []}
    assert decode_usage(item).window.total_seconds() == seconds


@pytest.mark.parametrize("key", ["window", "windowSeconds"])
def test_window_is_decoded_in_both_versions_of_custom_metrics(key: str) -> None:
    item: Any = {"describedObject": {"name": "p"}, "value": "1", key: 15}
    window = decode_pod_value(item).window
    assert window is not None
    assert window.total_seconds() == 15
