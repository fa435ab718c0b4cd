"""Several processes with shards beside a real API server that records their writes, under a load that keeps changing.

Every shard has as many namespaces and autoscalers as every other. In each namespace ``follow`` scales in both
directions at once, and ``hold`` has a stabilization window of an hour, so it keeps the size of the first, highest load.
"""

import json
import os
import ssl
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from autoscaler.sharding.assignment import shard_of
from tests.control_plane.cluster import LOOPBACK, ControlPlane, control_plane, free_port
from tests.control_plane.process import Program
from tests.faults.api import Api
from tests.integration.bulk import send_all
from tests.integration.scaling import ROOT, Json, allow_widgets, autoscaler, external
from tests.integration.service import apply_manifests, process, until
from tests.integration.write_record import SHARD, WriteRecord, audit_flags
from tests.prometheus.target import Target, target

HIGHEST: Final = 100
LOADS: Final = (40, 80, 60)
"""The loads that follow the highest; 5 per replica."""

_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/steadyscale/leases"
_WIDGET: Final = {"apiVersion": "example.com/v1", "kind": "Widget"}


def size_of(load: int) -> int:
    """Return the replicas for a load."""
    return load // 5


@dataclass(frozen=True)
class Timing:
    """The durations of leader election in seconds."""

    lease: int = 15
    renew: int = 10
    retry: int = 2

    def flags(self) -> tuple[str, ...]:
        names = {"lease-duration": self.lease, "renew-deadline": self.renew, "retry-period": self.retry}
        return tuple(f"--leader-elect-{name}={seconds}s" for name, seconds in names.items())


@dataclass(frozen=True)
class Replica:
    """One process."""

    port: int
    program: Program
    tls: ssl.SSLContext

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def get(self, path: str) -> str:
        """Return the response to a request of an administrator."""
        with urllib.request.urlopen(f"https://{self.address}{path}", timeout=30, context=self.tls) as response:
            return str(response.read().decode())

    def overview(self) -> Json:
        content: Json = json.loads(self.get("/debug/overview"))
        return content


@dataclass
class ShardFleet:
    """The processes, and the autoscalers that they share."""

    plane: ControlPlane
    shards: int
    timing: Timing
    namespaces: list[str]
    source: Target
    replicas: dict[str, Replica] = field(default_factory=dict)
    record: WriteRecord = field(init=False)

    def __post_init__(self) -> None:
        self.record = WriteRecord(self.plane.folder)

    @property
    def autoscalers(self) -> set[str]:
        return {f"{namespace}/{name}" for namespace in self.namespaces for name in ("follow", "hold")}

    def start(self, *names: str) -> None:
        """Start processes; all of them start at the same time."""
        threads = [threading.Thread(target=self._start, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _start(self, name: str) -> None:
        port = free_port()
        period = "--horizontal-pod-autoscaler-sync-period=5s"
        flags = (f"--shards={self.shards}", period, *self.timing.flags())
        program = process(self.plane, port, flags=flags, metrics=self._config())
        tls = ssl._create_unverified_context()  # noqa: S323 - a loopback address
        tls.load_cert_chain(self.plane.folder / "admin.crt", self.plane.folder / "admin.key")
        self.replicas[name] = Replica(port, program, tls)
        program.start()

    def set_load(self, load: int) -> None:
        """Change the metric of all autoscalers."""
        self.source.set(load=load)

    def _config(self) -> Json:
        rule = {"name": "load", "backend": "load", "interval": "1s"}
        parameters = {"path": "/", "format": "text", "value": r"load (\d+)"}
        return {
            "backends": {"load": {"http": {"url": f"http://{self.source.address}"}}},
            "rules": [{**rule, "parameters": parameters}],
        }

    @contextmanager
    def changing_load(self, seconds: float) -> Iterator[None]:
        """Change the load every so many seconds while the block runs."""
        stopped = threading.Event()

        def change() -> None:
            count = 0
            while not stopped.wait(seconds):
                self.set_load(LOADS[count % len(LOADS)])
                count += 1

        thread = threading.Thread(target=change)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()

    def holders(self) -> dict[int, str]:
        """Return the holder of each shard that has one."""
        items = Api(self.plane).get(_LEASES)["items"]
        names = {item["metadata"]["name"]: item["spec"].get("holderIdentity") for item in items}
        return {int(name.removeprefix(SHARD)): held for name, held in names.items() if name.startswith(SHARD) and held}

    def shares(self) -> dict[str, int]:
        """Return the number of shards of each process by its name; a process that has ended keeps its own."""
        counts = Counter(holder.rpartition("_")[2] for holder in self.holders().values())
        return {name: counts[replica.address] for name, replica in self.replicas.items()}

    def wait_for_shares(self, **shares: int) -> None:
        until(lambda: self.shares() == shares, f"the shards are divided as {shares}")

    def wait_for_sizes(self, name: str, size: int) -> None:
        """Wait until all targets of a name have a size."""

        def sizes() -> set[int]:
            items = Api(self.plane).get("/apis/example.com/v1/widgets")["items"]
            return {item["spec"]["size"] for item in items if item["metadata"]["name"] == name}

        until(lambda: sizes() == {size}, f"all targets {name} have size {size}")

    def wait_for_reconciles(self, since: datetime) -> None:
        """Wait until the status of every autoscaler has been written since a time; the load must be changing."""

        def written() -> set[str]:
            return {write.key for write in self.record.read() if write.is_status and write.received > since}

        until(lambda: written() == self.autoscalers, "every status is written")

    def stop(self, name: str) -> None:
        """Stop a process gracefully."""
        self.replicas.pop(name).program.stop()

    def kill(self, name: str) -> Replica:
        """Kill a process with SIGKILL."""
        replica = self.replicas.pop(name)
        replica.program.kill()
        return replica


def balanced_namespaces(shards: int, per_shard: int) -> list[str]:
    """Return names of namespaces of which every shard has the same number."""
    chosen: list[str] = []
    missing, number = Counter(dict.fromkeys(range(shards), per_shard)), 0
    while missing.total():
        name, number = f"team-{number}", number + 1
        if missing[shard := shard_of(name, shards)]:
            missing[shard] -= 1
            chosen.append(name)
    return chosen


@contextmanager
def shard_fleet(
    folder: Path, programs: dict[str, Path], *, shards: int, per_shard: int, timing: Timing
) -> Iterator[ShardFleet]:
    """Run a control plane with the autoscalers of a fleet; the caller starts the processes."""
    os.environ["POD_IP"] = LOOPBACK  # the processes reach each other at this address
    with target() as source, control_plane(folder, programs, apiserver_flags=audit_flags(folder)) as plane:
        fleet = ShardFleet(plane, shards, timing, balanced_namespaces(shards, per_shard), source)
        fleet.set_load(HIGHEST)
        apply_manifests(plane, free_port())
        plane.kubectl("apply", "-f", str(ROOT / "manifests" / "components" / "shards" / "rbac.yaml"))
        allow_widgets(plane)
        plane.kubectl("wait", "--for=condition=Established", "crd/podautoscalers.steadyscale.dev")
        plane.controller_manager.stop()
        _create_autoscalers(plane, fleet.namespaces)
        try:
            yield fleet
        finally:
            for replica in fleet.replicas.values():
                replica.program.stop()


def _create_autoscalers(plane: ControlPlane, namespaces: list[str]) -> None:
    own = [{"metadata": {"name": name}} for name in namespaces]
    send_all(plane, lambda kube: (kube.create("/api/v1/namespaces", namespace) for namespace in own))
    windows = {"follow": 0, "hold": 3600}
    keys = [(namespace, name) for namespace in namespaces for name in windows]
    widgets = {key: f"/apis/example.com/v1/namespaces/{key[0]}/widgets" for key in keys}
    status: dict[str, Any] = {"status": {"size": 8, "selector": "app=web"}}
    send_all(
        plane,
        lambda kube: (
            kube.create(path, {**_WIDGET, "metadata": {"name": name}, "spec": {"size": 8}})
            for (_, name), path in widgets.items()
        ),
    )
    send_all(plane, lambda kube: (kube.patch(f"{path}/{name}/status", status) for (_, name), path in widgets.items()))
    unlimited = {"policies": [{"type": "Pods", "value": 100, "periodSeconds": 1}], "stabilizationWindowSeconds": 0}
    scalers = {
        key: autoscaler(
            key[1],
            external("load"),
            target={**_WIDGET, "name": key[1]},
            behavior={"scaleUp": unlimited, "scaleDown": {**unlimited, "stabilizationWindowSeconds": windows[key[1]]}},
        )
        for key in keys
    }
    collection = "/apis/steadyscale.dev/v1beta1/namespaces/{}/podautoscalers"
    send_all(plane, lambda kube: (kube.create(collection.format(key[0]), one) for key, one in scalers.items()))
