"""The autoscaler when processes are killed and the API server is down."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Iterable, Iterator

import pytest

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from tests.control_plane.cluster import ControlPlane
from tests.integration.scaling import Rig, allow_widgets, autoscaler, deployment, external, rig
from tests.integration.service import until

pytestmark = [pytest.mark.apiserver, pytest.mark.slow]


@pytest.fixture
def running(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Rig]:
    with rig(plane, f"failures-{abs(hash(request.node.name)) % 10000}") as ready:
        yield ready


def holder(running: Rig) -> str:
    lease = running.plane.get("lease", "steadyscale", "--namespace=steadyscale", "--ignore-not-found")
    return str(lease["spec"].get("holderIdentity", ""))


def test_new_leader_after_a_kill_rescales_once(running):
    running.set(queue=40)
    running.apply(deployment("web", 8), autoscaler("web"))
    running.wait_for_condition("AbleToScale", "True", "ReadyForNewScale")
    first = holder(running)
    running.start(name="two")
    time.sleep(3)
    assert holder(running) == first
    running.programs[0].kill()
    running.set(queue=60)
    running.wait_for_replicas(12)
    assert holder(running) != first
    time.sleep(3)
    assert running.replicas() == 12
    assert running.events().count("SuccessfulRescale") == 1


def test_stopped_leader_releases_the_lease(running):
    running.apply(deployment("web", 8), autoscaler("web"))
    running.wait_for_condition("AbleToScale", "True", "ReadyForNewScale")
    first = holder(running)
    running.start(name="two")
    time.sleep(4)
    began = time.monotonic()
    running.programs[0].stop()
    until(lambda: holder(running) not in ("", first), "another process leads")
    assert time.monotonic() - began < 12  # before the lease of 15 s expires; most of it is kubectl


def test_scaling_continues_after_an_outage_of_the_api_server(running):
    running.apply(deployment("web", 8), autoscaler("web"))
    running.wait_for_condition("AbleToScale", "True", "ReadyForNewScale")
    running.plane.apiserver.stop()
    try:
        running.set(queue=60)
        # Until the watches have failed and the lease is lost: a longer outage changes nothing.
        texts, log = ("/externalmetrics: ", "leadership lost"), running.programs[0].log
        until(lambda: all(text in log.read_text() for text in texts), f"{texts} are logged")
    finally:
        running.plane.apiserver.start()
    running.wait_for_replicas(12)
    assert running.events().count("SuccessfulRescale") == 1


def test_changes_before_a_compaction_are_found_by_a_new_list(running):
    running.set(other=60)
    running.apply(deployment("web", 8), autoscaler("web"), deployment("other", 8), autoscaler("other"))
    running.wait_for_condition("AbleToScale", "True", "ReadyForNewScale")
    running.wait_for_condition("AbleToScale", "True", "ReadyForNewScale", "other")
    plane, controller = running.plane, running.programs[0].pid
    version = plane.get("podautoscaler", "web", f"--namespace={running.namespace}")["metadata"]["resourceVersion"]
    os.kill(controller, signal.SIGSTOP)  # so that its watch misses the following changes
    try:
        running.patch("podautoscaler", "web", {"spec": {"maxReplicas": 5}})
        plane.kubectl("delete", "podautoscaler", "other", f"--namespace={running.namespace}")
        plane.apiserver.stop()
        try:
            plane.compact()
        finally:
            plane.apiserver.start()
        assert '"code":410' in watch_from(running, version)
    finally:
        os.kill(controller, signal.SIGCONT)
    running.wait_for_replicas(5)
    running.set(queue=5)
    running.wait_for_replicas(1)
    assert running.replicas("other") == 8


def watch_from(running: Rig, version: str) -> str:
    """Watch from a resource version; return the response."""
    collection = f"/apis/steadyscale.dev/v1beta1/namespaces/{running.namespace}/podautoscalers"
    query = f"watch=1&resourceVersion={version}&timeoutSeconds=2"
    return running.plane.kubectl("get", "--raw", f"{collection}?{query}", check=False)


def test_thousand_autoscalers_created_at_once_are_all_scaled(running):
    running.set(many=60)
    allow_widgets(running.plane)
    reference = {"apiVersion": "example.com/v1", "kind": "Widget"}
    widgets = f"/apis/example.com/v1/namespaces/{running.namespace}/widgets"
    names = [f"w{index}" for index in range(1000)]
    status = {"status": {"size": 8, "selector": "app=w"}}
    behavior = {"scaleUp": {"stabilizationWindowSeconds": 0}}

    async def create() -> None:
        async with KubeClient.open(await connect(running.plane.kubeconfig("admin"))) as kube:
            objects = [{**reference, "metadata": {"name": name}, "spec": {"size": 8}} for name in names]
            await gather(kube.create(widgets, each) for each in objects)
            await gather(kube.patch(f"{widgets}/{name}/status", status) for name in names)
            scalers = [
                autoscaler(name, external("many"), target={**reference, "name": name}, behavior=behavior)
                for name in names
            ]
            path = f"/apis/steadyscale.dev/v1beta1/namespaces/{running.namespace}/podautoscalers"
            await gather(kube.create(path, scaler) for scaler in scalers)

    asyncio.run(create())

    def all_scaled() -> bool:
        found = running.plane.get("widgets.example.com", f"--namespace={running.namespace}")["items"]
        return [one["spec"]["size"] for one in found] == [12] * 1000

    until(all_scaled, "every widget has size 12")
    log = running.programs[0].log.read_text()
    assert "Traceback" not in log


async def gather(requests: Iterable[Awaitable[object]]) -> None:
    """Await requests, at most 40 concurrently."""
    limit = asyncio.Semaphore(40)

    async def one(request: Awaitable[object]) -> None:
        async with limit:
            await request

    await asyncio.gather(*map(one, requests))
