"""The built-in HPA and a PodAutoscaler with the same specs and metrics scale equal workloads in the same way.

Both read the metric from Steadyscale, one through the aggregated API, the other in its own process. Their sync periods
are not synchronized, so the test compares the sequences of replica counts, and keeps each metric value until both
workloads are stable.
"""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control_plane.cluster import ControlPlane, free_port
from tests.control_plane.process import Program
from tests.integration.scaling import Json, Rig, autoscaler, deployment, external, rig
from tests.integration.service import apply_manifests, service

pytestmark = [pytest.mark.apiserver, pytest.mark.slow]

SCALE_UP = {
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 4},
        {"type": "Percent", "value": 100, "periodSeconds": 4},
    ]
}
"""The default policies with a shorter period than STABLE_SECONDS: with the default of 15 s, a scale-down shortly before
a scale-up would or would not count, depending on the timing of the two controllers."""

SPECS: dict[str, Json] = {
    "plain": {"behavior": None},
    "down": {"behavior": {"scaleUp": SCALE_UP, "scaleDown": {"stabilizationWindowSeconds": 0}}},
    "slow": {
        "behavior": {
            "scaleUp": {"policies": [{"type": "Pods", "value": 3, "periodSeconds": 4}]},
            "scaleDown": {
                "stabilizationWindowSeconds": 4,
                "policies": [{"type": "Percent", "value": 50, "periodSeconds": 4}],
            },
        }
    },
    "loose": {"behavior": {"scaleUp": SCALE_UP, "scaleDown": {"stabilizationWindowSeconds": 0, "tolerance": "0.5"}}},
    "two-metrics": {
        "metrics": [external("load"), external("steady")],
        "behavior": {"scaleUp": SCALE_UP, "scaleDown": {"stabilizationWindowSeconds": 0}},
    },
}
STEADY = 35
"""The constant value of the second metric; while the first is unavailable, it alone can only scale up."""

VALUES = (20, 22, 19, 60, 45, 90, 30, None, 30, 12, None, 5, 70, 8)
"""The values of the metric in order; None: the metric is unavailable."""

STABLE_SECONDS = 9.0
"""Without a change for this long, and without a limiting policy, the replica counts are stable: longer than the delay
of a value through both systems plus the stabilization window of 4 s and the sync period of 2 s."""

LIMITED = {"ScaleUpLimit", "ScaleDownLimit"}
MAX_SECONDS = 90.0


@pytest.fixture
def pair(plane: ControlPlane) -> Iterator[Rig]:
    port = free_port()
    apply_manifests(plane, port)
    with service(plane, port), rig(plane, "parity", "--horizontal-pod-autoscaler-sync-period=2s") as ready:
        ready.published = plane.folder / f"service-{port}.yaml"  # type: ignore[attr-defined]
        yield ready


@pytest.fixture
def replica_watch(pair: Rig) -> Iterator["ReplicaWatch"]:
    watch = ReplicaWatch(pair)
    watch.program.start()
    yield watch
    watch.program.stop()


def publish(pair: Rig, value: int | None) -> None:
    """Set the value of the metric in both processes."""
    pair.set(load=value, steady=STEADY)
    config = pair.published  # type: ignore[attr-defined]
    content = json.loads(config.read_text())
    content["rules"] = json.loads(pair.config.read_text())["rules"]
    config.write_text(json.dumps(content))


class ReplicaWatch:
    """The sequence of replica counts of each workload, from a watch, because polling could miss some."""

    def __init__(self, pair: Rig) -> None:
        self._pair, plane = pair, pair.plane
        template = '{.metadata.name} {.spec.replicas}{"\\n"}'
        command: list[str | Path] = [
            plane.kubectl_path,
            f"--kubeconfig={plane.kubeconfig('admin')}",
            "get",
            "deployments",
        ]
        command += ["--namespace=parity", "--watch", f"--output=jsonpath={template}"]
        self.program = Program(command, plane.folder / "parity.replica_watch", lambda: True)

    def wait_until_stable(self) -> None:
        """Wait until no replica count has changed for a while and no policy limits a change."""
        began = changed = time.monotonic()
        before = self._sizes()
        while time.monotonic() - changed < STABLE_SECONDS:
            assert time.monotonic() - began < MAX_SECONDS, f"not stable within {MAX_SECONDS} s: {before}"
            autoscalers = self._pair.plane.get("hpa,spa", "--namespace=parity")["items"]
            replica_watch = self._sizes()
            if replica_watch != before or any(map(_is_limited, autoscalers)):
                before, changed = replica_watch, time.monotonic()
            time.sleep(0.3)

    def _sizes(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for name, size in re.findall(r"^(\S+) (\d+)\n", self.program.log.read_text(), re.MULTILINE):
            sequence = found.setdefault(name, [])
            if sequence[-1:] != [int(size)]:
                sequence.append(int(size))
        return found

    def sequences(self, prefix: str) -> dict[str, list[int]]:
        """Return the sequences of the workloads with this prefix, by spec."""
        replica_watch = self._sizes()
        return {name: replica_watch[f"{prefix}-{name}"] for name in SPECS}


def _is_limited(autoscaler: Json) -> bool:
    """Return whether a scaling policy limits the current change."""
    conditions = autoscaler.get("status", {}).get("conditions") or ()
    return any(one["type"] == "ScalingLimited" and one["reason"] in LIMITED for one in conditions)


def test_hpa_and_pod_autoscaler_scale_in_the_same_way(pair, replica_watch):
    publish(pair, 20)
    native = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    for name, spec in SPECS.items():
        own = autoscaler(f"pa-{name}", external("load"))
        own["spec"] = {key: value for key, value in {**own["spec"], **spec}.items() if value is not None}
        builtin = json.loads(json.dumps({**own, **native}))
        builtin["metadata"]["name"] = builtin["spec"]["scaleTargetRef"]["name"] = f"hpa-{name}"
        pair.apply(deployment(f"pa-{name}", 4), deployment(f"hpa-{name}", 4), own, builtin)
    replica_watch.wait_until_stable()
    for value in VALUES:
        publish(pair, value)
        replica_watch.wait_until_stable()
    for name, sequence in replica_watch.sequences("hpa").items():
        assert replica_watch.sequences("pa")[name] == sequence, name
    assert len(replica_watch.sequences("pa")["down"]) >= 7
