"""The autoscaler when processes are killed and servers are gone, beside a real API server."""

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

pytestmark = pytest.mark.apiserver


@pytest.fixture
def running(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Rig]:
    with rig(plane, f"bad-days-{abs(hash(request.node.name)) % 10000}") as ready:
        yield ready


def holder(running: Rig) -> str:
    lease = running.plane.get("lease", "steadyscale", "--namespace=steadyscale", "--ignore-not-found")
    return str(lease["spec"].get("holderIdentity", ""))


def test_a_leader_that_is_killed_is_succeeded_and_nothing_is_scaled_twice(running):
    running.set(queue=40)
    running.apply(deployment("web", 8), autoscaler("web"))
    running.says("AbleToScale", "True", "ReadyForNewScale")
    first = holder(running)
    running.start(name="two")
    time.sleep(3)
    assert holder(running) == first
    running.programs[0].kill()
    running.set(queue=60)
    running.becomes(12, within=45)
    assert holder(running) != first
    time.sleep(3)
    assert running.replicas() == 12
    assert running.events().count("SuccessfulRescale") == 1


def test_a_leader_that_is_told_to_stop_hands_over_at_once(running):
    running.apply(deployment("web", 8), autoscaler("web"))
    running.says("AbleToScale", "True", "ReadyForNewScale")
    first = holder(running)
    running.start(name="two")
    time.sleep(4)
    began = time.monotonic()
    running.programs[0].stop()
    until(lambda: holder(running) not in ("", first), "another leads", within=5)
    assert time.monotonic() - began < 3  # of which a good part is kubectl's


def test_an_api_server_that_is_gone_for_a_minute_finds_everything_as_it_was(running):
    running.apply(deployment("web", 8), autoscaler("web"))
    running.says("AbleToScale", "True", "ReadyForNewScale")
    running.plane.apiserver.stop()
    try:
        began = time.monotonic()
        running.set(queue=60)
        for said in ("/podautoscalers: ", "/horizontalpodautoscalers: ", "leadership lost"):
            until(lambda said=said: said in running.programs[0].log.read_text(), f"{said!r} is said", within=50)
        until(lambda: time.monotonic() - began > 60, "a minute is over", within=61)
    finally:
        running.plane.apiserver.start()
    running.becomes(12, within=60)
    assert running.events().count("SuccessfulRescale") == 1


def test_what_happened_before_the_past_was_forgotten_is_found_out_all_the_same(running):
    running.set(other=60)
    running.apply(deployment("web", 8), autoscaler("web"), deployment("other", 8), autoscaler("other"))
    running.says("AbleToScale", "True", "ReadyForNewScale")
    running.says("AbleToScale", "True", "ReadyForNewScale", "other")
    plane, controller = running.plane, running.programs[0].pid
    version = plane.get("podautoscaler", "web", f"--namespace={running.namespace}")["metadata"]["resourceVersion"]
    os.kill(controller, signal.SIGSTOP)  # so that it hears of nothing that happens now
    try:
        running.patch("podautoscaler", "web", {"spec": {"maxReplicas": 5}})
        plane.kubectl("delete", "podautoscaler", "other", f"--namespace={running.namespace}")
        plane.apiserver.stop()
        try:
            plane.compact()
        finally:
            plane.apiserver.start()
        assert '"code":410' in watched_from(running, version)
    finally:
        os.kill(controller, signal.SIGCONT)
    running.becomes(5, within=60)
    running.set(queue=5)
    running.becomes(1)
    assert running.replicas("other") == 8


def watched_from(running: Rig, version: str) -> str:
    """Ask the API server for what has happened since a version."""
    collection = f"/apis/steadyscale.dev/v1beta1/namespaces/{running.namespace}/podautoscalers"
    query = f"watch=1&resourceVersion={version}&timeoutSeconds=2"
    return running.plane.kubectl("get", "--raw", f"{collection}?{query}", check=False)


def test_a_thousand_created_at_once_are_all_scaled(running):
    running.set(many=60)
    allow_widgets(running.plane)
    reference = {"apiVersion": "example.com/v1", "kind": "Widget"}
    widgets = f"/apis/example.com/v1/namespaces/{running.namespace}/widgets"
    names = [f"w{index}" for index in range(1000)]
    has = {"status": {"size": 8, "selector": "app=w"}}
    behavior = {"scaleUp": {"stabilizationWindowSeconds": 0}}

    async def create() -> None:
        async with KubeClient.open(await connect(running.plane.kubeconfig("admin"))) as kube:
            things = [{**reference, "metadata": {"name": name}, "spec": {"size": 8}} for name in names]
            await gather(kube.create(widgets, thing) for thing in things)
            await gather(kube.patch(f"{widgets}/{name}/status", has) for name in names)
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

    until(all_scaled, "every one has 12", within=180)
    log = running.programs[0].log.read_text()
    assert "Traceback" not in log


async def gather(questions: Iterable[Awaitable[object]]) -> None:
    """Ask many questions, forty at a time."""
    limit = asyncio.Semaphore(40)

    async def one(question: Awaitable[object]) -> None:
        async with limit:
            await question

    await asyncio.gather(*map(one, questions))
