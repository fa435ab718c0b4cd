"""Upstream's traces on a cluster, in memory or real: each step's world is put up, a pass is made, its writes told."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from itertools import pairwise
from typing import Any, Self

from prometheus_client import CollectorRegistry

from adapter.fakecluster.api_errors import Refused
from adapter.fakecluster.cluster import Cluster
from adapter.fakecluster.kinds import Kind
from autoscaler.conformance import inputs
from autoscaler.conformance.reconcile import _CONFLICT, _PLURALS, _printed, _told
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.observe import Observer
from autoscaler.controller.reconcile import Reconciler
from autoscaler.controller.reconcile_plan import make_plan
from autoscaler.controller.reporting import Reporter
from autoscaler.kube.autoscalers import StatusWriter, watch_native, watch_podautoscalers
from autoscaler.kube.discovery import Discovery
from autoscaler.kube.pods import Pods
from autoscaler.kube.scale import ScaleClient
from autoscaler.kube.scale_paths import ScalePaths
from autoscaler.kube.targets import Targets
from autoscaler.settings import FeatureGates, Settings
from autoscaler.telemetry import ControllerTelemetry
from autoscaler.types.decision import Event
from autoscaler.types.spec import Metric
from autoscaler.wire import decode_autoscaler, decode_status, print_time
from tests.control_plane.cluster import ControlPlane
from tests.controller.real_cluster import RealCluster

Json = dict[str, Any]

SPACE = "test-namespace"
AUTOSCALERS = f"/apis/steadyscale.dev/v1beta1/namespaces/{SPACE}/podautoscalers"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
KINDS = {
    "Deployment": f"/apis/apps/v1/namespaces/{SPACE}/deployments",
    "StatefulSet": f"/apis/apps/v1/namespaces/{SPACE}/statefulsets",
    "ReplicaSet": f"/apis/apps/v1/namespaces/{SPACE}/replicasets",
    "ReplicationController": f"/api/v1/namespaces/{SPACE}/replicationcontrollers",
}
_AUTOSCALER = Kind(
    "steadyscale.dev", "v1beta1", "podautoscalers", "PodAutoscaler", has_status=True, counts_changes=True
)
_BY_PATHS = ScalePaths(".spec.replicas", ".status.replicas")
_CONTROLLER = Kind("", "v1", "replicationcontrollers", "ReplicationController", has_status=True, scale=_BY_PATHS)


def settings_of(trace: Json) -> tuple[Settings, FeatureGates]:
    flags = trace["flags"]
    made = Settings(
        tolerance=flags["tolerance"],
        downscale_stabilization=timedelta(seconds=flags["downscaleStabilization"]),
        cpu_initialization_period=timedelta(seconds=flags["cpuInitializationPeriod"]),
        initial_readiness_delay=timedelta(seconds=flags["initialReadinessDelay"]),
        sync_period=timedelta(seconds=flags["syncPeriod"]),
    )
    return made, FeatureGates(**trace["featureGates"])


def can_be_staged(trace: Json) -> bool:
    """Leave out what a real API server would not have let happen: unknown kinds, refused specs, selectors it mends."""
    reference = trace["hpa"]["spec"]["scaleTargetRef"]
    steps = trace["steps"]
    if "otherHPAs" in trace or (reference.get("apiVersion"), reference["kind"]) not in _KNOWN:
        return False
    if not re.fullmatch(r"[\w-]+=[\w-]+", trace["selector"]):
        return False
    if any(step["scale"].get("selector", trace["selector"]) != trace["selector"] for step in steps):
        return False
    specs = [trace["hpa"]["spec"], *(step["hpaSpec"] for step in steps if "hpaSpec" in step)]
    if any(one == other for one, other in pairwise(specs)):
        return False  # an edit that changes nothing is none
    return not any(_is_refused(trace, spec) for spec in specs)


_KNOWN = {("apps/v1", kind) for kind in ("Deployment", "StatefulSet", "ReplicaSet")} | {("v1", "ReplicationController")}


def _is_refused(trace: Json, spec: Json) -> bool:
    autoscaler = decode_autoscaler({**trace["hpa"], "spec": spec})
    plan = make_plan(autoscaler, *settings_of(trace))
    return bool(plan.problems) or plan.spec != autoscaler.spec


class TraceMetrics:
    """The three metrics APIs, as the step at hand has them."""

    def __init__(self) -> None:
        self.now: Json = {}

    async def read(self, _namespace: str, metric: Metric, _pods: object) -> Any:
        return inputs.reading_of(metric, self.now)

    async def external(self, _namespace: str, metric: Any) -> Any:
        return inputs.external_reading(self.now, metric.name)


class TraceEvents:
    def __init__(self) -> None:
        self.told: list[Event] = []

    def tell(self, _about: object, event: Event) -> None:
        self.told.append(event)


class Replayed:
    """One trace on its stage."""

    def __init__(self, trace: Json, cluster: Cluster | RealCluster) -> None:
        self.trace = trace
        self.cluster = cluster
        self.metrics = TraceMetrics()
        self.events = TraceEvents()
        self.now = inputs.EPOCH
        self.refusals: list[tuple[str, str, Refused]] = []
        self.name = trace["hpa"]["metadata"]["name"]
        reference = trace["hpa"]["spec"]["scaleTargetRef"]
        self.collection = KINDS[reference["kind"]]
        self.target = f"{self.collection}/{reference['name']}"
        self.plural = _PLURALS[reference.get("apiVersion", "").rpartition("/")[0], reference["kind"]]
        self.world: Dependencies | None = None
        self.reconciler: Reconciler | None = None
        self._let_through = cluster.weather.let_through
        cluster.weather.let_through = self._refuse  # type: ignore[method-assign]

    async def _refuse(self, verb: str, path: str, resource: str) -> None:
        for index, (when, where, refused) in enumerate(self.refusals):
            if verb == when and path.endswith(where):
                del self.refusals[index]
                raise refused
        await self._let_through(verb, path, resource)

    @classmethod
    @asynccontextmanager
    async def of(cls, trace: Json) -> AsyncIterator[Self]:
        replays: list[Replayed] = []
        async with Cluster.serving(lambda: replays[0].now if replays else inputs.EPOCH) as cluster:
            cluster.workloads.switch_off()
            cluster.kinds.add(_AUTOSCALER)
            cluster.kinds.add(_CONTROLLER)
            replay = cls(trace, cluster)
            replays.append(replay)
            async with replay._opened():
                yield replay

    @classmethod
    @asynccontextmanager
    async def for_real(cls, trace: Json, plane: ControlPlane) -> AsyncIterator[Self]:
        async with RealCluster.serving(plane) as cluster:
            replay = cls(trace, cluster)
            async with replay._opened():
                yield replay

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        settings, gates = settings_of(self.trace)
        if any("getScaleError" in step for step in self.trace["steps"]):
            self.cluster.weather.forbid("list", "deployments")
        async with AsyncExitStack() as stack:
            kube = await stack.enter_async_context(self.cluster.client())
            targets = await stack.enter_async_context(Targets.open(kube))
            pods = await stack.enter_async_context(Pods.open(kube))
            store = watch_podautoscalers(kube)
            self.world = Dependencies(
                autoscalers=store,
                native=watch_native(kube),
                targets=targets,
                scales=ScaleClient(kube, Discovery(kube), targets),
                pods=pods,
                metrics=self.metrics,  # type: ignore[arg-type]
                external=None,
                statuses=StatusWriter(kube, store),
                events=self.events,  # type: ignore[arg-type]
                clock=lambda: self.now,
                may_write=lambda: True,
            )
            observer = Observer(self.world, gates)
            reporter = Reporter(ControllerTelemetry(CollectorRegistry()))
            self.reconciler = Reconciler(self.world, observer, settings, gates, reporter)
            self._create()
            watching = asyncio.create_task(store.run())
            try:
                yield
            finally:
                watching.cancel()
                with suppress(asyncio.CancelledError):
                    await watching

    def _create(self) -> None:
        hpa = self.trace["hpa"]
        made = self.cluster.create(AUTOSCALERS, {"metadata": {"name": self.name}, "spec": hpa["spec"]})
        for _ in range(hpa["metadata"].get("generation", 1) - made["metadata"]["generation"]):
            self._bump()
        status = {key: value for key, value in (hpa.get("status") or {}).items() if value}
        if status:
            self.cluster.edit(f"{AUTOSCALERS}/{self.name}/status", {"status": status})

    def _bump(self) -> None:
        """Let the generation grow as if somebody had edited the spec back and forth."""
        most = self.cluster.get(f"{AUTOSCALERS}/{self.name}")["spec"]["maxReplicas"]  # type: ignore[index]
        self.cluster.edit(f"{AUTOSCALERS}/{self.name}", {"spec": {"maxReplicas": most + 1}})
        self.cluster.edit(f"{AUTOSCALERS}/{self.name}", {"spec": {"maxReplicas": most}})

    async def step(self, step: Json) -> Json:
        """Make one pass, and say what came of it."""
        self.now = inputs.moment(step["t"])
        self.metrics.now, self.events.told = step["metrics"], []
        self._change_world(step)
        self._refuse_what_is_refused(step)
        await self._catch_up()
        before = self._status()
        self.cluster.asked.clear()
        assert self.reconciler is not None
        wait = await self.reconciler.reconcile(f"{SPACE}/{self.name}")
        if wait is None:
            return {"error": None, "scaledTo": None, "scaleUpdateAttempts": [], "status": None, "events": []}
        entry = self.reconciler.memory.get(f"{SPACE}/{self.name}")
        assert entry is not None
        decision, after = entry.decision, self._status()
        assert decision is not None
        attempts = sum(one.verb == "update" and one.path.endswith("/scale") for one in self.cluster.asked)
        wanted = decision.replicas
        return {
            "error": decision.error,
            "scaledTo": decision.scale_to,
            "scaleUpdateAttempts": [wanted] * attempts,
            "status": None if after == before else after,
            "events": [_told(event) for event in self.events.told],
        }

    def _status(self) -> Json | None:
        found = self.cluster.get(f"{AUTOSCALERS}/{self.name}")
        return None if found is None else dict(_printed(decode_status(found.get("status") or {})))

    def _change_world(self, step: Json) -> None:
        path = f"{AUTOSCALERS}/{self.name}"
        if step.get("hpaDeleted"):
            self.cluster.delete(path)
        if step.get("hpaCreated"):
            self.cluster.create(AUTOSCALERS, {"metadata": {"name": self.name}, "spec": self.trace["hpa"]["spec"]})
        if "hpaSpec" in step:
            found = self.cluster.get(path)
            assert found is not None
            self.cluster.put(path, {**found, "spec": step["hpaSpec"]})
        self._put_target(step["scale"], gone=step.get("getScaleError") == "notfound")
        for one in step.get("podsSet") or ():
            template = self.trace["podTemplates"].get(one.get("tmpl"), {})
            self._put_pod(f"{PODS}/{one['name']}", pod_json({**template, **one}))
        for name in step.get("podsDelete") or ():
            if self.cluster.get(f"{PODS}/{name}") is not None:
                self.cluster.delete(f"{PODS}/{name}")

    def _put_pod(self, path: str, pod: Json) -> None:
        if self.cluster.get(path) is not None:
            self.cluster.delete(path)
        self.cluster.create(PODS, pod)

    def _put_target(self, scale: Json, *, gone: bool) -> None:
        there = self.cluster.get(self.target)
        if gone:
            if there is not None:
                self.cluster.delete(self.target)
            return
        label, _, value = self.trace["selector"].partition("=")
        template = {"metadata": {"labels": {label: value}}, "spec": {"containers": [{"name": "it", "image": "none"}]}}
        selector: Json = {"matchLabels": {label: value}}
        if self.collection == KINDS["ReplicationController"]:
            selector = selector["matchLabels"]
        spec: Json = {"replicas": scale["spec"], "template": template, "selector": selector}
        status: Json = {"replicas": scale["status"]}
        if there is None:
            self.cluster.create(self.collection, {"metadata": {"name": self.target.rsplit("/", 1)[1]}, "spec": spec})
        elif there["spec"]["replicas"] != scale["spec"]:
            self.cluster.edit(self.target, {"spec": {"replicas": scale["spec"]}})
        self.cluster.edit(f"{self.target}/status", {"status": status})

    def _refuse_what_is_refused(self, step: Json) -> None:
        self.refusals = [
            ("update", "/scale", self._refused(one, self.plural)) for one in step.get("scaleUpdateErrors") or ()
        ]
        if step.get("statusUpdateError"):
            refused = self._refused(step["statusUpdateError"], "horizontalpodautoscalers.autoscaling")
            self.refusals.append(("patch", "/status", refused))
        if step.get("getScaleError") not in (None, "notfound"):
            self.refusals.append(("get", "/scale", Refused(500, "InternalError", step["getScaleError"])))

    def _refused(self, why: str, plural: str) -> Refused:
        if why == "conflict":
            name = self.trace["hpa"]["spec"]["scaleTargetRef"]["name"] if "autoscaling" not in plural else self.name
            return Refused(409, "Conflict", _CONFLICT.format(plural, name))
        return Refused(500, "InternalError", why)

    async def _catch_up(self) -> None:
        """Wait until what is watched is what is there."""
        while not self._is_caught_up():  # noqa: ASYNC110 - there is nobody to tell us
            await asyncio.sleep(0.001)

    def _is_caught_up(self) -> bool:
        world = self.world
        assert world is not None
        if isinstance(self.cluster, RealCluster):
            return world.autoscalers.is_complete and self.cluster.has_told(world)
        stores = [(world.autoscalers, AUTOSCALERS)]
        stores += [(store, self.collection) for store in world.targets._stores.values() if store.is_complete]
        stores += [(one.store, PODS) for one in world.pods._watches.values() if one.store.is_complete]
        for store, collection in stores:
            versions = {
                f"{SPACE}/{one['metadata']['name']}": one["metadata"]["resourceVersion"]
                for one in self.cluster.list(collection)
            }
            if {key: kept.version for key, kept in store._kept.items()} != versions:
                return False
        return world.autoscalers.is_complete


def pod_json(pod: Json) -> Json:
    """Print a pod of a trace as the API server would."""
    metadata: Json = {"name": pod["name"], "labels": pod.get("labels") or {}}
    if pod.get("deletionTimestamp") is not None:
        metadata["deletionTimestamp"] = print_time(inputs.moment(pod["deletionTimestamp"]))
    status: Json = {"phase": pod.get("phase") or ""}
    if pod.get("startTime") is not None:
        status["startTime"] = print_time(inputs.moment(pod["startTime"]))
    if pod.get("ready") is not None:
        ready = {"type": "Ready", "status": pod["ready"]}
        if pod.get("readyTransition") is not None:
            ready["lastTransitionTime"] = print_time(inputs.moment(pod["readyTransition"]))
        status["conditions"] = [ready]
    spec: Json = {
        "containers": _containers(pod.get("containers")),
        "initContainers": _containers(pod.get("initContainers")),
    }
    if pod.get("podRequests"):
        spec["resources"] = {"requests": pod["podRequests"]}
    if pod.get("overhead"):
        spec["overhead"] = pod["overhead"]
    return {"metadata": metadata, "spec": spec, "status": status}


def _containers(containers: list[Json] | None) -> list[Json]:
    return [
        {
            "name": one["name"],
            "image": "none",
            "resources": {"requests": one.get("requests") or {}},
            **({"restartPolicy": one["restartPolicy"]} if one.get("restartPolicy") else {}),
        }
        for one in containers or ()
    ]
