"""The autoscaler beside a real API server, as a person would use it."""

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
    create_soon,
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


def test_a_deployment_goes_up_down_to_zero_and_back(running):
    running.set(queue=40)
    running.apply(deployment("web", 4), autoscaler("web", minReplicas=0))
    running.becomes(8)
    running.set(queue=60)
    running.becomes(12)
    running.set(queue=10)
    running.becomes(2)
    running.set(queue=0)
    running.becomes(0)
    running.says("ScaledToZero", "True", "ScaledToZero")
    running.set(queue=25)
    running.becomes(5)
    assert set(running.events()) == {"SuccessfulRescale"}


def test_a_custom_resource_does_so_too(running):
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


def test_people_see_it_as_they_see_an_hpa(running):
    running.set(seen=40)
    running.apply(deployment("seen", 8), autoscaler("seen", external("seen")))
    running.says("AbleToScale", "True", "ReadyForNewScale", "seen")
    table = running.plane.kubectl("get", "spa", "seen", "--namespace=market")
    assert "NAME" in table
    assert "seen" in table
    told = running.plane.kubectl("describe", "spa", "seen", "--namespace=market")
    assert "ReadyForNewScale" in told
    explained = running.plane.kubectl("explain", "podautoscaler.spec.metrics.external.fallback")
    assert "failureDurationSeconds" in explained
    assert "spa" in running.plane.kubectl("api-resources", "--api-group=steadyscale.dev")


def test_bad_objects_are_refused_with_the_field_named(running):
    for spec, field in (
        ({"maxReplicas": 0}, "spec.maxReplicas"),
        ({"minReplicas": 9, "maxReplicas": 3}, "spec.maxReplicas"),
        ({"metrics": [external("m", fallback={"replicas": 0})]}, "fallback.replicas"),
        ({"metrics": [external("m", fallback={})]}, "fallback.replicas"),
        ({"metrics": [external("m", fallback={"replicas": 1, "failureDurationSeconds": 179})]}, "failureDurationSecon"),
        ({"metrics": [external("m", fallback={"replicas": 1, "strategy": "Best"})]}, "fallback.strategy"),
    ):
        body = json.dumps(autoscaler("bad", **spec))
        said = running.plane.kubectl("create", "--namespace=market", "-f", "-", stdin=body, check=False)
        assert field in said, said


def test_a_second_owner_stops_it_and_is_named(running):
    running.set(owned=60)
    running.apply(deployment("owned", 8), autoscaler("owned", external("owned")))
    running.becomes(12, "owned")
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "owned"}
    native = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "owned"}}
    running.apply({**native, "spec": {"scaleTargetRef": reference, "minReplicas": 12, "maxReplicas": 13}})
    running.says("AbleToScale", "False", "AmbiguousTarget", "owned")
    running.plane.kubectl("delete", "hpa", "owned", "--namespace=market")
    running.says("AbleToScale", "True", "ReadyForNewScale", "owned")


def test_a_metric_that_stays_away_is_replaced_by_its_fallback(running):
    running.set(flaky=40)
    running.apply(deployment("flaky", 8))
    fallback = {"replicas": 10, "failureDurationSeconds": 180}
    running.apply(autoscaler("flaky", external("flaky", fallback=fallback)))
    running.says("ExternalMetricFallbackActive", "False", "NoFailureKnown", "flaky")
    running.set(flaky=None)
    running.says("ExternalMetricFallbackActive", "False", "FailureClockRunning", "flaky")
    assert running.replicas("flaky") == 8
    running.set(flaky=45)
    running.says("ExternalMetricFallbackActive", "False", "NoFailureKnown", "flaky")
    running.becomes(9, "flaky")


@pytest.fixture
def impatient(running: Rig) -> Iterator[Rig]:
    with short_fallbacks(running):
        yield running


def test_and_when_its_time_is_over_the_fallback_scales_until_the_metric_is_back(impatient):
    impatient.set_for_sure(away=40)
    impatient.apply(deployment("away", 8))
    fallback = {"replicas": 14, "failureDurationSeconds": 3}
    create_soon(impatient, autoscaler("away", external("away", fallback=fallback)))
    impatient.says("ExternalMetricFallbackActive", "False", "NoFailureKnown", "away")
    impatient.set(away=None)
    impatient.says("ExternalMetricFallbackActive", "True", "FallbackActive", "away")
    impatient.becomes(14, "away")
    impatient.set(away=45)
    impatient.says("ExternalMetricFallbackActive", "False", "NoFailureKnown", "away")
    impatient.becomes(9, "away")
    told = impatient.events("away")
    assert told.count("ExternalMetricFallbackActivated") == told.count("ExternalMetricFallbackDeactivated") == 1


def conflicts(running: Rig) -> int:
    """Count the scales of Deployments that the API server has refused because somebody else wrote first."""
    refused = ('code="409"', 'resource="deployments"', 'subresource="scale"')
    lines = running.plane.kubectl("get", "--raw", "/metrics").splitlines()
    counted = [
        line for line in lines if line.startswith("apiserver_request_total{") and all(x in line for x in refused)
    ]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in counted)


@contextmanager
def someone_else_writing(running: Rig, name: str) -> Iterator[None]:
    """Let somebody write to a Deployment all the time, as fast as that goes."""
    path, over = f"/apis/apps/v1/namespaces/{running.namespace}/deployments/{name}", threading.Event()

    async def write() -> None:
        async with KubeClient.open(await connect(running.plane.kubeconfig("admin"))) as kube:
            for turn in count():
                if over.is_set():
                    return
                await kube.patch(path, {"metadata": {"annotations": {"turn": str(turn)}}})

    writing = threading.Thread(target=lambda: asyncio.run(write()), name="someone else")
    writing.start()
    try:
        yield
    finally:
        over.set()
        writing.join()


def test_a_competing_writer_does_not_stop_it(running):
    running.set(fought=60)
    running.apply(deployment("fought", 8), autoscaler("fought", external("fought")))
    running.becomes(12, "fought")
    sizes, before = cycle((40, 60)), conflicts(running)

    def has_met_a_conflict() -> bool:
        running.set(fought=next(sizes))
        return conflicts(running) > before

    with someone_else_writing(running, "fought"):
        until(has_met_a_conflict, "a write of the scale is refused for another's sake", within=90)
        running.set(fought=25)
        running.becomes(5, "fought", within=60)


def test_a_target_that_goes_and_comes_back_is_scaled_again(running):
    running.set(gone=60)
    running.apply(deployment("gone", 8), autoscaler("gone", external("gone")))
    running.becomes(12, "gone")
    running.plane.kubectl("delete", "deployment", "gone", "--namespace=market")
    running.says("AbleToScale", "False", "FailedGetScale", "gone")
    running.apply(deployment("gone", 8))
    running.becomes(12, "gone")


def test_it_wrote_nothing_that_it_may_not(running):
    for program in running.programs:
        log = program.log.read_text()
        assert "Traceback" not in log
        assert "forbidden" not in log.lower(), log
