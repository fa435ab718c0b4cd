"""The same specs and metrics, given to the built-in HPA and to ours on twin workloads, through a day in minutes.

Both read the metric from our adapter, one through the aggregated API, the other in its own process. Their clocks are
not in step, so it is the sequence of sizes that is compared, and each number of the day is held until both have come to
rest.
"""

import json
import re
import time
from collections.abc import Iterator

import pytest

from tests.control_plane.cluster import ControlPlane, free_port
from tests.control_plane.process import Program
from tests.integration.scaling import Json, Rig, autoscaler, deployment, external, rig
from tests.integration.service import apply_manifests, service

pytestmark = pytest.mark.apiserver

SPECS = {
    "plain": {"behavior": None},
    "down": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}},
    "slow": {
        "behavior": {
            "scaleUp": {"policies": [{"type": "Pods", "value": 3, "periodSeconds": 4}]},
            "scaleDown": {
                "stabilizationWindowSeconds": 4,
                "policies": [{"type": "Percent", "value": 50, "periodSeconds": 4}],
            },
        }
    },
    "loose": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0, "tolerance": "0.5"}}},
    "pair": {"metrics": [external("load"), external("steady")]},
}
STEADY = 35
"""What the other metric of the pair is, all day; while the one cannot be read, it alone decides, and only upwards."""

DAY = (20, 22, 19, 60, 45, 90, 30, None, 30, 12, None, 5, 70, 8)
"""What the metric is, one number after the other; None: it cannot be read."""

AT_REST = 9.0
"""When nothing has changed for so long, and no policy makes anyone wait, nothing will: longer than the way of a number
through both systems, the window of four seconds, and a period of two."""

HELD_BACK = {"ScaleUpLimit", "ScaleDownLimit"}
AT_MOST = 90.0


@pytest.fixture
def twins(plane: ControlPlane) -> Iterator[Rig]:
    port = free_port()
    apply_manifests(plane, port)
    with service(plane, port), rig(plane, "twins", "--horizontal-pod-autoscaler-sync-period=2s") as ready:
        ready.published = plane.folder / f"service-{port}.yaml"  # type: ignore[attr-defined]
        yield ready


@pytest.fixture
def ways(twins: Rig) -> Iterator["Ways"]:
    seen = Ways(twins)
    seen.watch.start()
    yield seen
    seen.watch.stop()


def publish(twins: Rig, number: int | None) -> None:
    """Let both adapters serve the same number."""
    twins.set(load=number, steady=STEADY)
    config = twins.published  # type: ignore[attr-defined]
    content = json.loads(config.read_text())
    content["rules"] = json.loads(twins.config.read_text())["rules"]
    config.write_text(json.dumps(content))


class Ways:
    """All sizes that there were, one change after the other; watched, since a look now and then misses some."""

    def __init__(self, twins: Rig) -> None:
        self._twins, plane = twins, twins.plane
        shown = '{.metadata.name} {.spec.replicas}{"\\n"}'
        command = [plane.kubectl_path, f"--kubeconfig={plane.kubeconfig('admin')}", "get", "deployments"]
        command += ["--namespace=twins", "--watch", f"--output=jsonpath={shown}"]
        self.watch = Program(command, plane.folder / "twins.sizes", lambda: True)

    def rest(self) -> None:
        """Follow the sizes until none has changed for a while, and none is on its way."""
        began = changed = time.monotonic()
        before = self._sizes()
        while time.monotonic() - changed < AT_REST:
            assert time.monotonic() - began < AT_MOST, f"no rest within {AT_MOST} s: {before}"
            seen = self._twins.plane.get("hpa,spa", "--namespace=twins")["items"]
            sizes = self._sizes()
            if sizes != before or any(map(_is_held_back, seen)):
                before, changed = sizes, time.monotonic()
            time.sleep(0.3)

    def _sizes(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for name, size in re.findall(r"^(\S+) (\d+)\n", self.watch.log.read_text(), re.MULTILINE):
            way = found.setdefault(name, [])
            if way[-1:] != [int(size)]:
                way.append(int(size))
        return found

    def of(self, whose: str) -> dict[str, list[int]]:
        """Give the ways of ours, or of theirs."""
        sizes = self._sizes()
        return {name: sizes[f"{whose}-{name}"] for name in SPECS}


def _is_held_back(autoscaler: Json) -> bool:
    """Whether a policy lets it go only a part of its way for now."""
    conditions = autoscaler.get("status", {}).get("conditions") or ()
    return any(one["type"] == "ScalingLimited" and one["reason"] in HELD_BACK for one in conditions)


def test_twins_go_the_same_way(twins, ways):
    publish(twins, 20)
    native = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    for name, spec in SPECS.items():
        mine = autoscaler(f"ours-{name}", **{"metrics": [external("load")], **spec})
        if mine["spec"]["behavior"] is None:
            del mine["spec"]["behavior"]
        theirs = json.loads(json.dumps({**mine, **native}))
        theirs["metadata"]["name"] = theirs["spec"]["scaleTargetRef"]["name"] = f"theirs-{name}"
        twins.apply(deployment(f"ours-{name}", 4), deployment(f"theirs-{name}", 4), mine, theirs)
    ways.rest()
    for number in DAY:
        publish(twins, number)
        ways.rest()
    for name, way in ways.of("theirs").items():
        assert ways.of("ours")[name] == way, name
    assert len(ways.of("ours")["down"]) >= 7
