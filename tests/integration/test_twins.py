"""The same specs and metrics, given to the built-in HPA and to ours on twin workloads, through a day in minutes.

Both read the metric from our adapter, one through the aggregated API, the other in its own process. Their clocks are
not in step, so it is the sequence of sizes that is compared, and each number of the day is held until both have come to
rest.
"""

import json
import time
from collections.abc import Iterator
from itertools import groupby
from threading import Event, Thread

import pytest

from tests.control_plane.cluster import ControlPlane, free_port
from tests.integration.scaling import Rig, autoscaler, deployment, external, rig
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
}
DAY = (20, 22, 60, 45, 90, 30, None, 30, 12, 5, 70, 8)
"""What the metric is, one number after the other; None: it cannot be read."""

HOLD = 14.0


@pytest.fixture
def twins(plane: ControlPlane) -> Iterator[Rig]:
    port = free_port()
    apply_manifests(plane, port)
    with service(plane, port), rig(plane, "twins", "--horizontal-pod-autoscaler-sync-period=2s") as ready:
        ready.published = plane.folder / f"service-{port}.yaml"  # type: ignore[attr-defined]
        yield ready


def publish(twins: Rig, number: int | None) -> None:
    """Let both adapters serve the same number."""
    twins.set(load=number)
    config = twins.published  # type: ignore[attr-defined]
    content = json.loads(config.read_text())
    content["rules"] = json.loads(twins.config.read_text())["rules"]
    config.write_text(json.dumps(content))


def sizes(twins: Rig, stop: Event, seen: dict[str, list[int]]) -> None:
    """Follow all sizes, one change after the other."""
    while not stop.is_set():
        for one in twins.plane.get("deployments", "--namespace=twins")["items"]:
            seen.setdefault(one["metadata"]["name"], []).append(one["spec"]["replicas"])
        time.sleep(0.3)


def test_twins_go_the_same_way(twins):
    publish(twins, 20)
    native = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    for name, spec in SPECS.items():
        mine = autoscaler(f"ours-{name}", external("load"), **spec)
        if spec["behavior"] is None:
            del mine["spec"]["behavior"]
        theirs = json.loads(json.dumps({**mine, **native}))
        theirs["metadata"]["name"] = theirs["spec"]["scaleTargetRef"]["name"] = f"theirs-{name}"
        twins.apply(deployment(f"ours-{name}", 4), deployment(f"theirs-{name}", 4), mine, theirs)
    time.sleep(HOLD)
    stop, seen = Event(), dict[str, list[int]]()
    following = Thread(target=sizes, args=(twins, stop, seen))
    following.start()
    for number in DAY:
        publish(twins, number)
        time.sleep(HOLD)
    stop.set()
    following.join()
    ways = {name: [size for size, _ in groupby(way)] for name, way in seen.items()}
    assert {name: ways[f"ours-{name}"] for name in SPECS} == {name: ways[f"theirs-{name}"] for name in SPECS}
    assert len(ways["ours-down"]) >= 7
