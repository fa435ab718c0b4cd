"""Replays traces of upstream's HPA controller on a fake or real cluster, one reconcile per step."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import pairwise
from typing import Any, Self

from msgspec import convert, to_builtins
from prometheus_client import CollectorRegistry

from adapter.fakecluster.api_errors import ApiError
from adapter.fakecluster.kinds import Kind
from autoscaler.conformance import inputs
from autoscaler.conformance.reconcile import _PLURALS, error_text, status_output
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.observe import Observer
from autoscaler.controller.reconcile import Reconciler
from autoscaler.controller.reconcile_plan import make_plan
from autoscaler.controller.reporting import Reporter
from autoscaler.kube.autoscalers import StatusWriter, hpa_informer, podautoscaler_informer
from autoscaler.kube.discovery import Discovery
from autoscaler.kube.informer import Informer
from autoscaler.kube.pods import PodLister
from autoscaler.kube.scale import ScaleClient
from autoscaler.kube.scale_paths import ScalePaths
from autoscaler.kube.targets import TargetInformers
from autoscaler.settings import FeatureGates, Settings
from autoscaler.telemetry import ControllerTelemetry
from autoscaler.types.decision import Event
from autoscaler.types.spec import EXTERNAL, Metric
from autoscaler.values.timestamps import format_rfc3339
from autoscaler.wire import decode_autoscaler, decode_status
from tests.control_plane.cluster import ControlPlane
from tests.controller.real_cluster import RealCluster
from tests.fakes.cluster import Cluster

Json = dict[str, Any]

NAMESPACE = "test-namespace"
AUTOSCALERS = f"/apis/steadyscale.dev/v1beta1/namespaces/{NAMESPACE}/podautoscalers"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
KINDS = {
    "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "StatefulSet": f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets",
    "ReplicaSet": f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets",
    "ReplicationController": f"/api/v1/namespaces/{NAMESPACE}/replicationcontrollers",
}
_AUTOSCALER = Kind(
    "steadyscale.dev", "v1beta1", "podautoscalers", "PodAutoscaler", has_status=True, has_generation=True
)
_BY_PATHS = ScalePaths(".spec.replicas", ".status.replicas")
_CONTROLLER = Kind("", "v1", "replicationcontrollers", "ReplicationController", has_status=True, scale=_BY_PATHS)


def settings_of(trace: Json) -> tuple[Settings, FeatureGates]:
    return convert(trace["flags"], Settings, strict=False), FeatureGates(**trace["featureGates"])


def can_be_replayed(trace: Json) -> bool:
    """Exclude traces that an API server makes impossible: unknown kinds, rejected specs, normalized selectors."""
    reference = trace["hpa"]["spec"]["scaleTargetRef"]
    steps = trace["steps"]
    if "otherHPAs" in trace or (reference.get("apiVersion"), reference["kind"]) not in _KNOWN:
        return False
    if not re.fullmatch(r"[\w-]+=[\w-]+", trace["selector"]):
        return False
    if any(step["scale"].get("selector", trace["selector"]) != trace["selector"] for step in steps):
        return False
    specs = [trace["hpa"]["spec"], *(step["hpaSpec"] for step in steps if "hpaSpec" in step)]
    if any(before == after for before, after in pairwise(specs)):
        return False  # an update without changes has no effect
    return not any(_is_rejected(trace, spec) for spec in specs)


_KNOWN = {("apps/v1", kind) for kind in ("Deployment", "StatefulSet", "ReplicaSet")} | {("v1", "ReplicationController")}


def _is_rejected(trace: Json, spec: Json) -> bool:
    autoscaler = decode_autoscaler({**trace["hpa"], "spec": spec})
    plan = make_plan(autoscaler, *settings_of(trace))
    return bool(plan.problems) or plan.spec != autoscaler.spec


class TraceMetrics:
    """The three metrics APIs with the values of the current step."""

    def __init__(self) -> None:
        self.now: Json = {}

    async def read(self, _namespace: str, metric: Metric, _pods: object) -> Any:
        return inputs.reading_of(metric, self.now)

    async def external(self, _namespace: str, metric: Any) -> Any:
        return inputs.named_reading(EXTERNAL, metric, self.now)


class TraceEvents:
    def __init__(self) -> None:
        self.recorded: list[Event] = []

    def record(self, _autoscaler: object, event: Event) -> None:
        self.recorded.append(event)


class TraceReplay:
    """The replay of one trace."""

    def __init__(self, trace: Json, cluster: Cluster | RealCluster) -> None:
        self.trace = trace
        self.cluster = cluster
        self.metrics = TraceMetrics()
        self.events = TraceEvents()
        self.now = inputs.EPOCH
        self.failures: list[tuple[str, str, ApiError]] = []
        self.name = trace["hpa"]["metadata"]["name"]
        reference = trace["hpa"]["spec"]["scaleTargetRef"]
        self.collection = KINDS[reference["kind"]]
        self.target = f"{self.collection}/{reference['name']}"
        self.plural = _PLURALS[reference.get("apiVersion", "").rpartition("/")[0], reference["kind"]]
        self.dependencies: Dependencies | None = None
        self.reconciler: Reconciler | None = None
        self._inject = cluster.faults.inject
        cluster.faults.inject = self._fail  # type: ignore[method-assign]

    async def _fail(self, verb: str, path: str, resource: str) -> None:
        for index, (failing_verb, suffix, error) in enumerate(self.failures):
            if verb == failing_verb and path.endswith(suffix):
                del self.failures[index]
                raise error
        await self._inject(verb, path, resource)

    @classmethod
    @asynccontextmanager
    async def on_fake_cluster(cls, trace: Json) -> AsyncIterator[Self]:
        replays: list[TraceReplay] = []
        async with Cluster.serving(lambda: replays[0].now if replays else inputs.EPOCH) as cluster:
            cluster.workloads.pause()
            cluster.kinds.add(_AUTOSCALER)
            cluster.kinds.add(_CONTROLLER)
            replay = cls(trace, cluster)
            replays.append(replay)
            async with replay._opened():
                yield replay

    @classmethod
    @asynccontextmanager
    async def on_control_plane(cls, trace: Json, plane: ControlPlane) -> AsyncIterator[Self]:
        async with RealCluster.serving(plane) as cluster:
            replay = cls(trace, cluster)
            async with replay._opened():
                yield replay

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        settings, gates = settings_of(self.trace)
        if any("getScaleError" in step for step in self.trace["steps"]):
            self.cluster.faults.forbid("list", "deployments")
        async with AsyncExitStack() as stack:
            kube = await stack.enter_async_context(self.cluster.client())
            targets = await stack.enter_async_context(TargetInformers.open(kube))
            pods = await stack.enter_async_context(PodLister.open(kube))
            autoscalers = podautoscaler_informer(kube)
            self.dependencies = Dependencies(
                autoscalers=autoscalers,
                hpas=hpa_informer(kube),
                targets=targets,
                scales=ScaleClient(kube, Discovery(kube), targets),
                pods=pods,
                metrics=self.metrics,  # type: ignore[arg-type]
                external=None,
                statuses=StatusWriter(kube, autoscalers),
                events=self.events,  # type: ignore[arg-type]
                clock=lambda: self.now,
                may_write=lambda: True,
            )
            observer = Observer(self.dependencies, gates)
            reporter = Reporter(ControllerTelemetry(CollectorRegistry()))
            self.reconciler = Reconciler(self.dependencies, observer, settings, gates, reporter)
            self._create()
            watching = asyncio.create_task(autoscalers.run())
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
            self._increment_generation()
        status = {key: value for key, value in (hpa.get("status") or {}).items() if value}
        if status:
            self.cluster.patch(f"{AUTOSCALERS}/{self.name}/status", {"status": status})

    def _increment_generation(self) -> None:
        """Increase the generation with two edits that cancel each other."""
        maximum = self.cluster.get(f"{AUTOSCALERS}/{self.name}")["spec"]["maxReplicas"]  # type: ignore[index]
        self.cluster.patch(f"{AUTOSCALERS}/{self.name}", {"spec": {"maxReplicas": maximum + 1}})
        self.cluster.patch(f"{AUTOSCALERS}/{self.name}", {"spec": {"maxReplicas": maximum}})

    async def step(self, step: Json) -> Json:
        """Run one reconcile and return its results in the format of the trace."""
        self.now = inputs.moment(step["t"])
        self.metrics.now, self.events.recorded = step["metrics"], []
        self._apply_changes(step)
        self._inject_failures(step)
        await self._wait_for_informers()
        before = self._status()
        self.cluster.requests.clear()
        assert self.reconciler is not None
        delay = await self.reconciler.reconcile(f"{NAMESPACE}/{self.name}")
        if delay is None:
            return {"error": None, "scaledTo": None, "scaleUpdateAttempts": [], "status": None, "events": []}
        state = self.reconciler.state.get(f"{NAMESPACE}/{self.name}")
        assert state is not None
        decision, after = state.decision, self._status()
        assert decision is not None
        attempts = sum(
            request.verb == "update" and request.path.endswith("/scale") for request in self.cluster.requests
        )
        return {
            "error": decision.error,
            "scaledTo": decision.scale_to,
            "scaleUpdateAttempts": [decision.replicas] * attempts,
            "status": None if after == before else after,
            "events": [to_builtins(event) for event in self.events.recorded],
        }

    def _status(self) -> Json | None:
        found = self.cluster.get(f"{AUTOSCALERS}/{self.name}")
        return None if found is None else dict(status_output(decode_status(found.get("status") or {})))

    def _apply_changes(self, step: Json) -> None:
        path = f"{AUTOSCALERS}/{self.name}"
        if step.get("hpaDeleted"):
            self.cluster.delete(path)
        if step.get("hpaCreated"):
            self.cluster.create(AUTOSCALERS, {"metadata": {"name": self.name}, "spec": self.trace["hpa"]["spec"]})
        if "hpaSpec" in step:
            found = self.cluster.get(path)
            assert found is not None
            self.cluster.put(path, {**found, "spec": step["hpaSpec"]})
        self._put_target(step["scale"], missing=step.get("getScaleError") == "notfound")
        for pod in step.get("podsSet") or ():
            template = self.trace["podTemplates"].get(pod.get("tmpl"), {})
            self._put_pod(f"{PODS}/{pod['name']}", pod_json({**template, **pod}))
        for name in step.get("podsDelete") or ():
            if self.cluster.get(f"{PODS}/{name}") is not None:
                self.cluster.delete(f"{PODS}/{name}")

    def _put_pod(self, path: str, pod: Json) -> None:
        if self.cluster.get(path) is not None:
            self.cluster.delete(path)
        self.cluster.create(PODS, pod)

    def _put_target(self, scale: Json, *, missing: bool) -> None:
        target = self.cluster.get(self.target)
        if missing:
            if target is not None:
                self.cluster.delete(self.target)
            return
        label, _, value = self.trace["selector"].partition("=")
        template = {"metadata": {"labels": {label: value}}, "spec": {"containers": [{"name": "it", "image": "none"}]}}
        selector: Json = {"matchLabels": {label: value}}
        if self.collection == KINDS["ReplicationController"]:
            selector = selector["matchLabels"]
        spec: Json = {"replicas": scale["spec"], "template": template, "selector": selector}
        status: Json = {"replicas": scale["status"]}
        if target is None:
            self.cluster.create(self.collection, {"metadata": {"name": self.target.rsplit("/", 1)[1]}, "spec": spec})
        elif target["spec"]["replicas"] != scale["spec"]:
            self.cluster.patch(self.target, {"spec": {"replicas": scale["spec"]}})
        self.cluster.patch(f"{self.target}/status", {"status": status})

    def _inject_failures(self, step: Json) -> None:
        self.failures = [
            ("update", "/scale", self._error(text, self.plural, refused=True))
            for text in step.get("scaleUpdateErrors") or ()
        ]
        if step.get("statusUpdateError"):
            error = self._error(step["statusUpdateError"], "horizontalpodautoscalers.autoscaling")
            self.failures.append(("update", "/status", error))
        if step.get("getScaleError") not in (None, "notfound"):
            self.failures.append(("get", "/scale", ApiError(500, "InternalError", step["getScaleError"])))

    def _error(self, text: str, plural: str, *, refused: bool = False) -> ApiError:
        """Return the error of a write; ``refused``: with a code that says that the write was not applied."""
        if text == "conflict":
            name = self.trace["hpa"]["spec"]["scaleTargetRef"]["name"] if "autoscaling" not in plural else self.name
            return ApiError(409, "Conflict", error_text(text, plural, name))
        return ApiError(403, "Forbidden", text) if refused else ApiError(500, "InternalError", text)

    async def _wait_for_informers(self) -> None:
        """Wait until the informers have the current state of the cluster."""
        while not self._is_up_to_date():  # noqa: ASYNC110 - the informers have no event for it
            await asyncio.sleep(0.001)

    def _is_up_to_date(self) -> bool:
        dependencies = self.dependencies
        assert dependencies is not None
        if isinstance(self.cluster, RealCluster):
            return dependencies.autoscalers.is_synced and self.cluster.is_up_to_date(dependencies)
        informers: list[tuple[Informer[Any], str]] = [(dependencies.autoscalers, AUTOSCALERS)]
        informers += [(informer, self.collection) for informer in dependencies.targets._informers.values()]
        informers += [(index.informer, PODS) for index in dependencies.pods._namespaces.values()]
        for informer, collection in informers:
            if not informer.is_synced:
                continue
            versions = {
                f"{NAMESPACE}/{content['metadata']['name']}": content["metadata"]["resourceVersion"]
                for content in self.cluster.list(collection)
            }
            if {key: stored.resource_version for key, stored in informer._store.items()} != versions:
                return False
        return dependencies.autoscalers.is_synced


def pod_json(pod: Json) -> Json:
    """Return a pod of a trace as API object."""
    metadata: Json = {"name": pod["name"], "labels": pod.get("labels") or {}}
    if pod.get("deletionTimestamp") is not None:
        metadata["deletionTimestamp"] = format_rfc3339(inputs.moment(pod["deletionTimestamp"]))
    status: Json = {"phase": pod.get("phase") or ""}
    if pod.get("startTime") is not None:
        status["startTime"] = format_rfc3339(inputs.moment(pod["startTime"]))
    if pod.get("ready") is not None:
        ready = {"type": "Ready", "status": pod["ready"]}
        if pod.get("readyTransition") is not None:
            ready["lastTransitionTime"] = format_rfc3339(inputs.moment(pod["readyTransition"]))
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
            "name": container["name"],
            "image": "none",
            "resources": {"requests": container.get("requests") or {}},
            **({"restartPolicy": container["restartPolicy"]} if container.get("restartPolicy") else {}),
        }
        for container in containers or ()
    ]
