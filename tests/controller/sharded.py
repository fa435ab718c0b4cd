"""A fleet in many namespaces with several controller processes; every write is checked against the Leases."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

from aiohttp import web
from msgspec.structs import replace as replaced
from prometheus_client import CollectorRegistry

from autoscaler.controller.run import ControllerProcess
from autoscaler.kube.errors import Unavailable
from autoscaler.settings import ControllerOptions
from autoscaler.sharding.assignment import shard_of
from autoscaler.sharding.held_shards import HeldShards
from autoscaler.sharding.protocol import gate_identity
from autoscaler.telemetry import ControllerTelemetry
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from tests.controller.harness import FakeExternalMetrics, Harness, definition, queue
from tests.fakes.cluster import Cluster

LEASES = "/apis/coordination.k8s.io/v1/namespaces/steadyscale/leases"
NAMESPACES = tuple(f"team-{number:02}" for number in range(20))
SHARDED = ControllerOptions(shards=8)


class Write(NamedTuple):
    """A write of a scale or status, with the holders of the Leases when it arrived."""

    at: float
    writer: str
    path: str
    holder: str
    gate: str


class RecordingCluster(Cluster):
    """An API server that records who writes what; the token of a process is its identity."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.writes: list[Write] = []
        self.shards: dict[str, int] = {}
        """The number of shards of each process."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        writer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if request.method in {"PUT", "PATCH"} and request.path.endswith(("/scale", "/status")):
            namespace = request.path.split("/namespaces/")[1].split("/")[0]
            shards = self.shards[writer]
            name = "steadyscale" if shards == 1 else f"steadyscale-shard-{shard_of(namespace, shards)}"
            at = asyncio.get_running_loop().time()
            self.writes.append(Write(at, writer, request.path, self.holder(name), self.holder("steadyscale")))
        return await super().handle(request)

    def holder(self, lease: str) -> str:
        found = self.get(f"{LEASES}/{lease}")
        return "" if found is None else str(found["spec"]["holderIdentity"])

    def foreign_writes(self) -> list[Write]:
        """Return the writes of processes that did not hold the shard, or whose number of shards was not agreed."""
        return [
            write
            for write in self.writes
            if write.holder != write.writer
            or write.gate
            != (write.writer if self.shards[write.writer] == 1 else gate_identity(self.shards[write.writer]))
        ]


@dataclass
class Decisions:
    """A decision listener that records the times of decisions by key."""

    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    controlled: frozenset[str] = frozenset()

    def on_decision(self, key: str, _autoscaler: Autoscaler, _decision: Decision) -> None:
        self.times[key].append(asyncio.get_running_loop().time())

    def on_deleted(self, key: str) -> None:
        raise AssertionError(f"{key} was not deleted")

    def on_leadership_acquired(self, keys: Collection[str], _shards: HeldShards) -> None:
        self.controlled = frozenset(keys)

    def on_leadership_lost(self) -> None:
        self.controlled = frozenset()


@dataclass
class Fleet:
    """The cluster, the autoscalers and the processes."""

    harness: Harness
    cluster: RecordingCluster
    decisions: dict[str, Decisions] = field(default_factory=dict)
    partitioned: set[str] = field(default_factory=set)

    def start(self, identity: str, options: ControllerOptions = SHARDED) -> ControllerProcess:
        async def credentials() -> Mapping[str, str]:
            if identity in self.partitioned:
                raise Unavailable("partitioned")
            return {"Authorization": f"Bearer {identity}"}

        self.cluster.shards[identity] = options.shards
        self.decisions[identity] = Decisions()
        process = ControllerProcess(
            replace(self.cluster.connection, credentials=credentials),
            self.harness.external_metrics,
            options,
            ControllerTelemetry(CollectorRegistry()),
            self.cluster.clock,
            identity,
            listeners=[self.decisions[identity]],
        )
        self.harness.processes.append(process)
        self.harness.tasks[id(process)] = asyncio.create_task(process.run(), name=identity)
        return process

    def create(self) -> None:
        """Create one Deployment and autoscaler in each namespace, each with a metric of its own."""
        for namespace in NAMESPACES:
            spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {}}}
            self.cluster.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", _object("web", spec))
            target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
            body = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 20, "metrics": [queue(namespace)]}
            path = f"/apis/steadyscale.dev/v1beta1/namespaces/{namespace}/podautoscalers"
            self.cluster.create(path, _object("web", body))
            self.harness.external_metrics.set(namespace, 10)

    async def vary_load(self) -> None:
        """Change every metric again and again, so that scales are written all the time."""
        value = 10
        while True:
            for namespace in NAMESPACES:
                await asyncio.sleep(0.7)
                self.harness.external_metrics.set(namespace, value)
            value = value % 95 + 17

    def replicas(self, namespace: str) -> int:
        found = self.cluster.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/web")
        assert found is not None
        return int(found["spec"]["replicas"])

    def held(self, *processes: ControllerProcess) -> list[int]:
        return [len(process.controllers) for process in processes]

    def longest_pause(self, since: float, *identities: str) -> float:
        """Return the longest time in which an autoscaler was not reconciled by any of the processes."""
        now, longest = asyncio.get_running_loop().time(), 0.0
        for namespace in NAMESPACES:
            times = [time for name in identities for time in self.decisions[name].times[f"{namespace}/web"]]
            ordered = [since, *sorted(time for time in times if time > since), now]
            longest = max(longest, *(after - before for before, after in pairwise(ordered)))
        return longest


def _object(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def with_shards(shards: int) -> ControllerOptions:
    return replaced(SHARDED, shards=shards)


@asynccontextmanager
async def running_fleet() -> AsyncIterator[Fleet]:
    """Run a fleet on the in-memory cluster, with a changing load; check all writes at the end."""
    async with RecordingCluster.serving() as cluster:
        cluster.install_crd(definition())
        harness = Harness(cluster, FakeExternalMetrics(clock=cluster.clock))
        fleet = Fleet(harness, cluster)
        fleet.create()
        load = asyncio.create_task(fleet.vary_load())
        try:
            async with harness.stop_at_exit():
                yield fleet
        finally:
            load.cancel()
        assert cluster.writes
        assert cluster.foreign_writes() == []
