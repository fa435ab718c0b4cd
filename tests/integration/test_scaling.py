"""The autoscaler against a real API server."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, cycle

import pytest

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from tests.control_plane.cluster import ControlPlane
from tests.integration.scaling import (
    Rig,
    allow_widgets,
    autoscaler,
    create_with_retry,
    deployment,
    external,
    rig,
    short_fallbacks,
)
from tests.integration.service import until

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="module")
def running(plane: ControlPlane) -> Iterator[Rig]:
    with rig(plane, "market") as ready:
        yield ready


def test_deployment_scales_up_down_to_zero_and_back(running):
    running.set(queue=40)
    running.apply(deployment("web", 4), autoscaler("web", minReplicas=0))
    running.wait_for_replicas(8)
    running.set(queue=60)
    running.wait_for_replicas(12)
    running.set(queue=10)
    running.wait_for_replicas(2)
    running.set(queue=0)
    running.wait_for_replicas(0)
    running.wait_for_condition("ScaledToZero", "True", "ScaledToZero")
    running.set(queue=25)
    running.wait_for_replicas(5)
    assert set(running.events()) == {"SuccessfulRescale"}


def test_custom_resource_scales_up_to_zero_and_back(running):
    running.set(custom=40)
    allow_widgets(running.plane)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 8}}
    running.apply(widget)
    running.patch("widgets.example.com", "w", {"status": {"size": 8, "selector": "app=w"}}, "--subresource=status")
    target = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"}
    running.apply(autoscaler("w", external("custom"), target=target, minReplicas=0))
    size = lambda: running.get("widgets.example.com", "w")["spec"]["size"]  # noqa: E731
    running.set(custom=60)
    until(lambda: size() == 12, "the widget has 12")
    running.patch("widgets.example.com", "w", {"status": {"size": 12, "selector": "app=w"}}, "--subresource=status")
    running.set(custom=0)
    until(lambda: size() == 0, "the widget has none")
    running.set(custom=15)
    until(lambda: size() == 3, "the widget has 3")


def test_kubectl_get_describe_and_explain_work(running):
    running.set(seen=40)
    running.apply(deployment("seen", 8), autoscaler("seen", external("seen")))
    running.wait_for_condition("AbleToScale", "True", "ReadyForNewScale", "seen")
    table = running.plane.kubectl("get", "spa", "seen", "--namespace=market")
    assert "NAME" in table
    assert "seen" in table
    output = running.plane.kubectl("describe", "spa", "seen", "--namespace=market")
    assert "ReadyForNewScale" in output
    explained = running.plane.kubectl("explain", "podautoscaler.spec.metrics.external.fallback")
    assert "failureDurationSeconds" in explained
    assert "spa" in running.plane.kubectl("api-resources", "--api-group=steadyscale.dev")


def test_api_server_rejects_invalid_objects_with_the_field_path(running):
    for spec, field in (
        ({"maxReplicas": 0}, "spec.maxReplicas"),
        ({"minReplicas": 9, "maxReplicas": 3}, "spec.maxReplicas"),
        ({"metrics": [external("m", fallback={"replicas": 0})]}, "fallback.replicas"),
        ({"metrics": [external("m", fallback={})]}, "fallback.replicas"),
        ({"metrics": [external("m", fallback={"replicas": 1, "failureDurationSeconds": 179})]}, "failureDurationSecon"),
        ({"metrics": [external("m", fallback={"replicas": 1, "strategy": "Best"})]}, "fallback.strategy"),
    ):
        body = json.dumps(autoscaler("bad", **spec))
        output = running.plane.kubectl("create", "--namespace=market", "-f", "-", stdin=body, check=False)
        assert field in output, output


def test_conflicting_hpa_stops_scaling_until_it_is_deleted(running):
    running.set(owned=60)
    running.apply(deployment("owned", 8), autoscaler("owned", external("owned")))
    running.wait_for_replicas(12, "owned")
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "owned"}
    native = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "owned"}}
    running.apply({**native, "spec": {"scaleTargetRef": reference, "minReplicas": 12, "maxReplicas": 13}})
    running.wait_for_condition("AbleToScale", "False", "AmbiguousTarget", "owned")
    running.plane.kubectl("delete", "hpa", "owned", "--namespace=market")
    running.wait_for_condition("AbleToScale", "True", "ReadyForNewScale", "owned")


def test_failed_metric_keeps_the_replicas_before_the_failure_duration(running):
    running.set(flaky=40)
    running.apply(deployment("flaky", 8))
    fallback = {"replicas": 10, "failureDurationSeconds": 180}
    running.apply(autoscaler("flaky", external("flaky", fallback=fallback)))
    running.wait_for_condition("ExternalMetricFallbackActive", "False", "NoFailureKnown", "flaky")
    running.set(flaky=None)
    running.wait_for_condition("ExternalMetricFallbackActive", "False", "FallbackPending", "flaky")
    assert running.replicas("flaky") == 8
    running.set(flaky=45)
    running.wait_for_condition("ExternalMetricFallbackActive", "False", "NoFailureKnown", "flaky")
    running.wait_for_replicas(9, "flaky")


@pytest.fixture
def short_fallback_rig(running: Rig) -> Iterator[Rig]:
    with short_fallbacks(running):
        yield running


def test_fallback_applies_after_the_failure_duration_until_the_metric_is_back(short_fallback_rig):
    short_fallback_rig.set_and_wait(away=40)
    short_fallback_rig.apply(deployment("away", 8))
    fallback = {"replicas": 14, "failureDurationSeconds": 3}
    create_with_retry(short_fallback_rig, autoscaler("away", external("away", fallback=fallback)))
    short_fallback_rig.wait_for_condition("ExternalMetricFallbackActive", "False", "NoFailureKnown", "away")
    short_fallback_rig.set(away=None)
    short_fallback_rig.wait_for_condition("ExternalMetricFallbackActive", "True", "FallbackActive", "away")
    short_fallback_rig.wait_for_replicas(14, "away")
    short_fallback_rig.set(away=45)
    short_fallback_rig.wait_for_condition("ExternalMetricFallbackActive", "False", "NoFailureKnown", "away")
    short_fallback_rig.wait_for_replicas(9, "away")
    output = short_fallback_rig.events("away")
    assert output.count("ExternalMetricFallbackActivated") == output.count("ExternalMetricFallbackDeactivated") == 1


def conflicts(running: Rig) -> int:
    """Count the conflicts of writes to the scale of Deployments, from the metrics of the API server."""
    labels = ('code="409"', 'resource="deployments"', 'subresource="scale"')
    lines = running.plane.kubectl("get", "--raw", "/metrics").splitlines()
    matching = [
        line for line in lines if line.startswith("apiserver_request_total{") and all(label in line for label in labels)
    ]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in matching)


@contextmanager
def concurrent_writes(running: Rig, name: str) -> Iterator[None]:
    """Patch a Deployment continuously while the context is open."""
    path, stop = f"/apis/apps/v1/namespaces/{running.namespace}/deployments/{name}", threading.Event()

    async def write() -> None:
        async with KubeClient.open(await connect(running.plane.kubeconfig("admin"))) as kube:
            for turn in count():
                if stop.is_set():
                    return
                await kube.patch(path, {"metadata": {"annotations": {"turn": str(turn)}}})

    writer = threading.Thread(target=lambda: asyncio.run(write()), name="concurrent writer")
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def test_write_conflicts_do_not_stop_scaling(running):
    running.set(fought=60)
    running.apply(deployment("fought", 8), autoscaler("fought", external("fought")))
    running.wait_for_replicas(12, "fought")
    sizes, before = cycle((40, 60)), conflicts(running)

    def has_conflict() -> bool:
        running.set(fought=next(sizes))
        return conflicts(running) > before

    with concurrent_writes(running, "fought"):
        until(has_conflict, "a write of the scale conflicts")
        running.set(fought=25)
        running.wait_for_replicas(5, "fought")


def test_recreated_target_is_scaled_again(running):
    running.set(gone=60)
    running.apply(deployment("gone", 8), autoscaler("gone", external("gone")))
    running.wait_for_replicas(12, "gone")
    running.plane.kubectl("delete", "deployment", "gone", "--namespace=market")
    running.wait_for_condition("AbleToScale", "False", "FailedGetScale", "gone")
    running.apply(deployment("gone", 8))
    running.wait_for_replicas(12, "gone")


def test_log_has_no_tracebacks_and_no_forbidden_requests(running):
    for program in running.programs:
        log = program.log.read_text()
        assert "Traceback" not in log
        assert "forbidden" not in log.lower(), log
