"""Run traces of upstream's controller: status, conditions, events, errors and history, reconcile by reconcile."""

from msgspec import convert, to_builtins
from msgspec.structs import asdict, replace

from autoscaler.algorithm.decide import decide
from autoscaler.algorithm.selection import selecting_autoscalers
from autoscaler.algorithm.write_failures import after_failed_rescale, after_failed_status_write
from autoscaler.conformance import inputs
from autoscaler.conformance.inputs import Comparison, Json
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.observation import Observation, Pod, ScaleTarget, TargetReadStage, UnavailableTarget
from autoscaler.types.status import Status
from autoscaler.values.selector import SelectorError, parse
from autoscaler.wire import decode_autoscaler, decode_spec, encode

MAX_SCALE_WRITES = 5
"""How often upstream tries to write the scale before it reports a conflict."""

_PLURALS = {
    ("apps", "DaemonSet"): "daemonsets.apps",
    ("apps", "Deployment"): "deployments.apps",
    ("apps", "ReplicaSet"): "replicasets.apps",
    ("apps", "StatefulSet"): "statefulsets.apps",
    ("", "ReplicationController"): "replicationcontrollers",
}
_NO_OUTPUTS: Json = {"error": None, "scaledTo": None, "scaleUpdateAttempts": [], "status": None, "events": []}


def run(trace: Json, _document: Json) -> Comparison:
    """Replay a trace, and return the outputs of each step and the history after the last one."""
    replay = Replay(trace)
    expected: dict[str, Json] = {}
    got: dict[str, Json] = {}
    for step in trace["steps"]:
        name = f"t={step['t']}"
        expected[name] = {"scaleUpdateAttempts": [], **step["expect"], "platformDependent": None}
        got[name] = replay.step(step)
        if any(event["reason"] == "FailedGetScale" for event in expected[name]["events"]):
            # Upstream decoded the metrics of this status, which loses the notation of quantities.
            expected[name], got[name] = _read_back(expected[name]), _read_back(got[name])
    return {**expected, "finalMemory": trace["finalMemory"]}, {**got, "finalMemory": replay.encoded_history()}


def _read_back(output: Json) -> Json:
    status = output["status"]
    if status is None:
        return output
    decoded = decode_autoscaler({"status": {"currentMetrics": status["currentMetrics"]}}).status
    return {**output, "status": {**status, "currentMetrics": encode(decoded)["currentMetrics"]}}


class Replay:
    """Replay the steps of a trace for one autoscaler."""

    def __init__(self, trace: Json) -> None:
        self._trace = trace
        self._gates = FeatureGates(**trace["featureGates"])
        self._settings = convert(trace["flags"], Settings, strict=False)
        self._autoscaler: Autoscaler | None = decode_autoscaler(trace["hpa"])
        self._pods: dict[str, Pod] = {}
        self._now = inputs.EPOCH
        self._history = inputs.decode_history({"recommendations": trace.get("initialRecommendations")})

    def step(self, step: Json) -> Json:
        """Apply one step, and return what the controller did."""
        self._now = inputs.moment(step["t"])
        self._apply_changes(step)
        if self._autoscaler is None:
            self._history = inputs.decode_history({})
            return _NO_OUTPUTS
        return self._reconcile(self._autoscaler, step)

    def encoded_history(self) -> Json:
        """Return the history, with ages instead of times."""
        return inputs.encode_history(self._history, self._now)

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
            self._pods[entry["name"]] = inputs.decode_pod({**template, **entry})
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
        attempts, error = _write_scale(autoscaler, decision, step)
        if error is not None:
            decision = after_failed_rescale(decision, autoscaler, self._history, error)
        self._history = decision.history
        written = None
        if decision.status_changed and step.get("statusUpdateError"):
            name = autoscaler.metadata.name
            error = error_text(step["statusUpdateError"], "horizontalpodautoscalers.autoscaling", name)
            decision = after_failed_status_write(decision, name, error)
        elif decision.status_changed:
            self._autoscaler = replace(autoscaler, status=decision.status)
            written = status_output(decision.status)
        return {
            "error": decision.error,
            "scaledTo": decision.scale_to,
            "scaleUpdateAttempts": attempts,
            "status": written,
            "events": [to_builtins(event) for event in (*decision.events, *decision.late_events)],
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
        readings = tuple(inputs.reading_of(metric, step["metrics"]) for metric in autoscaler.spec.metrics or ())
        namespace = autoscaler.metadata.namespace
        selectors = {
            f"{namespace}/{other['name']}": parse(other["selector"]) for other in self._trace.get("otherHPAs") or ()
        }
        selectors[f"{namespace}/{autoscaler.metadata.name}"] = selector
        return Observation(target, pods, readings, selecting_autoscalers(pods, selectors))

    def _target(self, autoscaler: Autoscaler, step: Json) -> ScaleTarget | UnavailableTarget:
        reference = autoscaler.spec.scale_target_ref
        plural = _plural(autoscaler)
        if not plural:
            group = reference.api_version.rpartition("/")[0]
            message = f'no matches for kind "{reference.kind}" in group "{group}"'
            return UnavailableTarget(message, TargetReadStage.MAPPING)
        if step.get("getScaleError"):
            error = step["getScaleError"]
            return UnavailableTarget(f'{plural} "{reference.name}" not found' if error == "notfound" else error)
        scale = step["scale"]
        return ScaleTarget(scale["spec"], scale["status"], scale.get("selector", self._trace["selector"]))


def _write_scale(autoscaler: Autoscaler, decision: Decision, step: Json) -> tuple[list[int], str | None]:
    """Write the scale as upstream does: retry conflicts a few times, and fail at once on other errors."""
    if decision.scale_to is None:
        return [], None
    errors = step.get("scaleUpdateErrors") or ()
    for attempts, error in enumerate(errors, 1):
        if error != "conflict" or attempts == MAX_SCALE_WRITES:
            text = error_text(error, _plural(autoscaler), autoscaler.spec.scale_target_ref.name)
            return [decision.scale_to] * attempts, text
    return [decision.scale_to] * (len(errors) + 1), None


def _plural(autoscaler: Autoscaler) -> str:
    reference = autoscaler.spec.scale_target_ref
    return _PLURALS.get((reference.api_version.rpartition("/")[0], reference.kind), "")


def error_text(error: str, plural: str, name: str) -> str:
    """Return the error of a write as the API server words it; ``conflict`` stands for its text."""
    if error != "conflict":
        return error
    changed = "the object has been modified; please apply your changes to the latest version and try again"
    return f'Operation cannot be fulfilled on {plural} "{name}": {changed}'


def status_output(status: Status) -> Json:
    """Encode a status as vectors do, with times in seconds."""
    return {
        "currentReplicas": status.current_replicas,
        "desiredReplicas": status.desired_replicas,
        "lastScaleTime": inputs.seconds_of(status.last_scale_time),
        "observedGeneration": status.observed_generation,
        "currentMetrics": encode(status)["currentMetrics"],
        "conditions": [
            {"lastTransitionTime": inputs.seconds_of(entry.pop("last_transition_time")), **entry}
            for entry in map(asdict, status.conditions)
        ],
    }
