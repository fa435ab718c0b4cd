"""Run traces of upstream's controller: status, conditions, events, errors and history, reconcile by reconcile."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from autoscaler.algorithm.decide import decide
from autoscaler.algorithm.selection import selecting_autoscalers
from autoscaler.algorithm.write_failures import after_failed_rescale, after_failed_status_write
from autoscaler.conformance import inputs
from autoscaler.conformance.inputs import Json
from autoscaler.conformance.result import Case, Difference, Document, compare
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision, Event
from autoscaler.types.history import History, Recommendation, ScaleEvent
from autoscaler.types.observation import Observation, Pod, ScaleTarget, TargetReadStage, UnavailableTarget
from autoscaler.types.status import Status
from autoscaler.values.selector import Selector, SelectorError, parse
from autoscaler.wire import decode_autoscaler, decode_spec, encode_status

MAX_SCALE_WRITES = 5
"""How often upstream tries to write the scale before it reports a conflict."""

_PLURALS = {
    ("apps", "DaemonSet"): "daemonsets.apps",
    ("apps", "Deployment"): "deployments.apps",
    ("apps", "ReplicaSet"): "replicasets.apps",
    ("apps", "StatefulSet"): "statefulsets.apps",
    ("", "ReplicationController"): "replicationcontrollers",
}
_CONFLICT = (
    'Operation cannot be fulfilled on {} "{}": '
    "the object has been modified; please apply your changes to the latest version and try again"
)


def sections(document: Document) -> tuple[str, ...]:
    """Return the section of a file of reconcile traces, or nothing for other files."""
    traces = document.get("traces")
    return ("traces",) if isinstance(traces, list) and all("steps" in trace for trace in traces) else ()


def cases(document: Document) -> Iterator[Case]:
    """Yield every trace as one case; its history is compared after the last step."""
    for trace in document["traces"]:
        yield Case(trace["id"], partial(_differences, trace))


def _differences(trace: Json) -> Iterator[Difference]:
    replay = Replay(trace)
    for step in trace["steps"]:
        got = replay.step(step)
        expected: Json = {"scaleUpdateAttempts": [], **step["expect"], "platformDependent": None}
        if any(event["reason"] == "FailedGetScale" for event in expected["events"]):
            # Upstream decoded the metrics of this status, which loses the notation of quantities.
            expected, got = _read_back(expected), _read_back(got)
        yield from compare(f"t={step['t']}", expected, got)
    yield from compare("finalMemory", trace["finalMemory"], replay.stored_history())


def _read_back(output: Json) -> Json:
    status = output["status"]
    if status is None:
        return output
    decoded = decode_autoscaler({"status": {"currentMetrics": status["currentMetrics"]}}).status
    return {**output, "status": {**status, "currentMetrics": encode_status(decoded)["currentMetrics"]}}


class Replay:
    """Replay the steps of a trace for one autoscaler."""

    def __init__(self, trace: Json) -> None:
        flags, gates = trace["flags"], trace["featureGates"]
        self._trace = trace
        self._gates = FeatureGates(**gates)
        self._settings = Settings(
            tolerance=flags["tolerance"],
            downscale_stabilization=timedelta(seconds=flags["downscaleStabilization"]),
            cpu_initialization_period=timedelta(seconds=flags["cpuInitializationPeriod"]),
            initial_readiness_delay=timedelta(seconds=flags["initialReadinessDelay"]),
            sync_period=timedelta(seconds=flags["syncPeriod"]),
        )
        self._autoscaler: Autoscaler | None = decode_autoscaler(trace["hpa"])
        self._pods: dict[str, Pod] = {}
        self._now = inputs.EPOCH
        self._history = History(
            tuple(
                Recommendation(entry["replicas"], inputs.moment(-entry["age"]))
                for entry in trace.get("initialRecommendations") or ()
            )
        )

    def step(self, step: Json) -> Json:
        """Apply one step, and return what the controller did."""
        self._now = inputs.moment(step["t"])
        self._apply_changes(step)
        if self._autoscaler is None:
            self._history = History()
            return {"error": None, "scaledTo": None, "scaleUpdateAttempts": [], "status": None, "events": []}
        return self._reconcile(self._autoscaler, step)

    def stored_history(self) -> Json:
        """Return the history, with ages instead of times."""
        return {
            "recommendations": [
                {"replicas": entry.replicas, "age": self._age(entry.at)} for entry in self._history.recommendations
            ],
            "scaleUpEvents": [self._event(entry) for entry in self._history.scale_ups],
            "scaleDownEvents": [self._event(entry) for entry in self._history.scale_downs],
        }

    def _event(self, event: ScaleEvent) -> Json:
        return {"change": event.change, "age": self._age(event.at), "outdated": event.outdated}

    def _age(self, at: datetime) -> int:
        return round((self._now - at).total_seconds())

    def _apply_changes(self, step: Json) -> None:
        if step.get("hpaDeleted"):
            self._autoscaler = None
        if step.get("hpaCreated"):
            self._autoscaler = replace(decode_autoscaler(self._trace["hpa"]), status=Status())
        if self._autoscaler is not None and "hpaSpec" in step:
            metadata = replace(self._autoscaler.metadata, generation=step["generation"])
            self._autoscaler = replace(self._autoscaler, spec=decode_spec(step["hpaSpec"]), metadata=metadata)
        for entry in step.get("podsSet") or ():
            template = self._trace["podTemplates"].get(entry.get("tmpl"), {})
            self._pods[entry["name"]] = inputs.pod({**template, **entry})
        for name in step.get("podsDelete") or ():
            self._pods.pop(name, None)

    def _reconcile(self, autoscaler: Autoscaler, step: Json) -> Json:
        decision = decide(
            autoscaler=autoscaler,
            observation=self._observe(autoscaler, step),
            history=self._history,
            settings=self._settings,
            gates=self._gates,
            now=self._now,
        )
        attempts, error = self._write_scale(autoscaler, decision, step)
        if error is not None:
            decision = after_failed_rescale(decision, autoscaler, self._history, error)
        self._history = decision.history
        written = None
        if decision.status_changed and step.get("statusUpdateError"):
            name = autoscaler.metadata.name
            error = _error_text(step["statusUpdateError"], "horizontalpodautoscalers.autoscaling", name)
            decision = after_failed_status_write(decision, name, error)
        elif decision.status_changed:
            self._autoscaler = replace(autoscaler, status=decision.status)
            written = _status_output(decision.status)
        return {
            "error": decision.error,
            "scaledTo": decision.scale_to,
            "scaleUpdateAttempts": attempts,
            "status": written,
            "events": [_event_output(event) for event in (*decision.events, *decision.late_events)],
        }

    def _observe(self, autoscaler: Autoscaler, step: Json) -> Observation:
        target = self._target(autoscaler, step)
        if isinstance(target, UnavailableTarget):
            return Observation(target)
        try:
            selector = parse(target.selector)
        except SelectorError as error:
            return Observation(replace(target, selector_error=str(error)))
        pods = tuple(pod for pod in self._pods.values() if selector.matches(pod.labels))
        return Observation(
            target,
            pods,
            tuple(inputs.reading_of(metric, step["metrics"]) for metric in autoscaler.spec.metrics or ()),
            selecting_autoscalers(pods, self._selectors(autoscaler, selector)),
        )

    def _selectors(self, autoscaler: Autoscaler, own: Selector) -> dict[str, Selector]:
        namespace = autoscaler.metadata.namespace
        others = self._trace.get("otherHPAs") or ()
        selectors = {f"{namespace}/{other['name']}": parse(other["selector"]) for other in others}
        return {**selectors, f"{namespace}/{autoscaler.metadata.name}": own}

    def _target(self, autoscaler: Autoscaler, step: Json) -> ScaleTarget | UnavailableTarget:
        reference = autoscaler.spec.scale_target_ref
        plural = _plural(autoscaler)
        if plural is None:
            group = reference.api_version.rpartition("/")[0]
            return UnavailableTarget(
                f'no matches for kind "{reference.kind}" in group "{group}"', TargetReadStage.MAPPING
            )
        if step.get("getScaleError"):
            error = step["getScaleError"]
            return UnavailableTarget(f'{plural} "{reference.name}" not found' if error == "notfound" else error)
        scale = step["scale"]
        return ScaleTarget(scale["spec"], scale["status"], scale.get("selector", self._trace["selector"]))

    def _write_scale(self, autoscaler: Autoscaler, decision: Decision, step: Json) -> tuple[list[int], str | None]:
        """Write the scale as upstream does: retry conflicts a few times, and fail at once on other errors."""
        if decision.scale_to is None:
            return [], None
        attempts: list[int] = []
        errors = list(step.get("scaleUpdateErrors") or ())
        while True:
            attempts.append(decision.scale_to)
            if not errors:
                return attempts, None
            error = errors.pop(0)
            if error != "conflict" or len(attempts) == MAX_SCALE_WRITES:
                name = autoscaler.spec.scale_target_ref.name
                return attempts, _error_text(error, _plural(autoscaler) or "", name)


def _plural(autoscaler: Autoscaler) -> str | None:
    reference = autoscaler.spec.scale_target_ref
    return _PLURALS.get((reference.api_version.rpartition("/")[0], reference.kind))


def _error_text(error: str, plural: str, name: str) -> str:
    return _CONFLICT.format(plural, name) if error == "conflict" else error


def _status_output(status: Status) -> Json:
    encoded = encode_status(status)
    return {
        "currentReplicas": status.current_replicas,
        "desiredReplicas": status.desired_replicas,
        "lastScaleTime": inputs.seconds_of(status.last_scale_time),
        "observedGeneration": status.observed_generation,
        "currentMetrics": encoded["currentMetrics"],
        "conditions": [
            {
                "type": entry.type,
                "status": entry.status,
                "reason": entry.reason,
                "message": entry.message,
                "lastTransitionTime": inputs.seconds_of(entry.last_transition_time),
            }
            for entry in status.conditions
        ],
    }


def _event_output(event: Event) -> Json:
    return {"type": event.type, "reason": event.reason, "message": event.message}
