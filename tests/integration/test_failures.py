"""The autoscaler when processes are killed and servers are gone, beside a real API server."""

import json
import time
from collections.abc import Iterator

import pytest

from tests.control_plane.cluster import ControlPlane
from tests.integration.scaling import Rig, autoscaler, deployment, external, rig
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


def test_an_api_server_that_is_gone_for_a_while_finds_everything_as_it_was(running):
    running.apply(deployment("web", 8), autoscaler("web"))
    running.says("AbleToScale", "True", "ReadyForNewScale")
    running.plane.apiserver.stop()
    running.set(queue=60)
    time.sleep(20)
    running.plane.apiserver.start()
    running.becomes(12, within=60)
    assert running.events().count("SuccessfulRescale") == 1


def test_hundreds_created_at_once_are_all_looked_at(running):
    running.set(many=40)
    things = []
    for index in range(300):
        things += [deployment(f"d{index}", 0), autoscaler(f"d{index}", external("many"))]
    for thing in things:
        thing["metadata"]["namespace"] = running.namespace
    body = json.dumps({"kind": "List", "apiVersion": "v1", "items": things})
    running.plane.kubectl("create", "-f", "-", stdin=body)

    def all_said() -> bool:
        found = running.plane.get("podautoscalers", f"--namespace={running.namespace}")["items"]
        return len(found) == 300 and all("conditions" in one.get("status", {}) for one in found)

    until(all_said, "every one has a status", within=60)
