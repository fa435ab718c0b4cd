"""Runs whole traces of upstream's controller: status, conditions, messages, events, errors and memory, step by step."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from autoscaler.algorithm.decide import decide
from autoscaler.algorithm.selection import who_selects
from autoscaler.algorithm.write_failures import after_failed_rescale, after_failed_status_write
from autoscaler.conformance import inputs
from autoscaler.conformance.inputs import Json
from autoscaler.conformance.result import Case, Difference, Document, compare
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision, Event
from autoscaler.types.history import History, Recommendation, ScaleEvent
from autoscaler.types.observation import Hop, Observation, Pod, ScaleTarget, TargetUnreadable
from autoscaler.types.status import Status
from autoscaler.values.selector import Selector, SelectorError, parse
from autoscaler.wire import decode_autoscaler, decode_spec, encode_status

MOST_SCALE_WRITES = 5
"""How often upstream writes the scale before it takes a conflict for an answer."""

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
    """Recognise a file of reconcile traces."""
    traces = document.get("traces")
    return ("traces",) if isinstance(traces, list) and all("steps" in trace for trace in traces) else ()


def cases(document: Document) -> Iterator[Case]:
    """Give every trace; each is one case, and so its memory is checked after its last step."""
    for trace in document["traces"]:
        yield Case(trace["id"], partial(_differences, trace))


def _differences(trace: Json) -> Iterator[Difference]:
    replay = Replay(trace)
    for step in trace["steps"]:
        got = replay.step(step)
        expected: Json = {"scaleUpdateAttempts": [], **step["expect"], "platformDependent": None}
        if any(event["reason"] == "FailedGetScale" for event in expected["events"]):
            # The metrics of this status were read back, and reading a quantity forgets in which notation it was sent.
            expected, got = _read_back(expected), _read_back(got)
        yield from compare(f"t={step['t']}", expected, got)
    yield from compare("finalMemory", trace["finalMemory"], replay.memory())


def _read_back(told: Json) -> Json:
    status = told["status"]
    if status is None:
        return told
    kept = decode_autoscaler({"status": {"currentMetrics": status["currentMetrics"]}}).status
    return {**told, "status": {**status, "currentMetrics": encode_status(kept)["currentMetrics"]}}


class Replay:
    """One autoscaler and its controller's memory, through the steps of a trace."""

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
        self._past = History(
            tuple(
                Recommendation(one["replicas"], inputs.moment(-one["age"]))
                for one in trace.get("initialRecommendations") or ()
            )
        )

    def step(self, step: Json) -> Json:
        """Take one step, and say what the controller did."""
        self._now = inputs.moment(step["t"])
        self._change_world(step)
        if self._autoscaler is None:
            self._past = History()
            return {"error": None, "scaledTo": None, "scaleUpdateAttempts": [], "status": None, "events": []}
        return self._reconcile(self._autoscaler, step)

    def memory(self) -> Json:
        """Say what the controller remembers, by age."""
        return {
            "recommendations": [
                {"replicas": one.replicas, "age": self._age(one.at)} for one in self._past.recommendations
            ],
            "scaleUpEvents": [self._event(one) for one in self._past.scale_ups],
            "scaleDownEvents": [self._event(one) for one in self._past.scale_downs],
        }

    def _event(self, event: ScaleEvent) -> Json:
        return {"change": event.change, "age": self._age(event.at), "outdated": event.outdated}

    def _age(self, at: datetime) -> int:
        return round((self._now - at).total_seconds())

    def _change_world(self, step: Json) -> None:
        if step.get("hpaDeleted"):
            self._autoscaler = None
        if step.get("hpaCreated"):
            self._autoscaler = replace(decode_autoscaler(self._trace["hpa"]), status=Status())
        if self._autoscaler is not None and "hpaSpec" in step:
            metadata = replace(self._autoscaler.metadata, generation=step["generation"])
            self._autoscaler = replace(self._autoscaler, spec=decode_spec(step["hpaSpec"]), metadata=metadata)
        for one in step.get("podsSet") or ():
            template = self._trace["podTemplates"].get(one.get("tmpl"), {})
            self._pods[one["name"]] = inputs.pod({**template, **one})
        for name in step.get("podsDelete") or ():
            self._pods.pop(name, None)

    def _reconcile(self, autoscaler: Autoscaler, step: Json) -> Json:
        decision = decide(
            autoscaler=autoscaler,
            seen=self._observe(autoscaler, step),
            past=self._past,
            settings=self._settings,
            gates=self._gates,
            now=self._now,
        )
        attempts, error = self._write_scale(autoscaler, decision, step)
        if error is not None:
            decision = after_failed_rescale(decision, autoscaler, self._past, error)
        self._past = decision.history
        written = None
        if decision.status_changed and step.get("statusUpdateError"):
            name = autoscaler.metadata.name
            refused = _error_text(step["statusUpdateError"], "horizontalpodautoscalers.autoscaling", name)
            decision = after_failed_status_write(decision, name, refused)
        elif decision.status_changed:
            self._autoscaler = replace(autoscaler, status=decision.status)
            written = _printed(decision.status)
        return {
            "error": decision.error,
            "scaledTo": decision.scale_to,
            "scaleUpdateAttempts": attempts,
            "status": written,
            "events": [_told(event) for event in (*decision.events, *decision.late_events)],
        }

    def _observe(self, autoscaler: Autoscaler, step: Json) -> Observation:
        target = self._target(autoscaler, step)
        if isinstance(target, TargetUnreadable):
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
            who_selects(pods, self._selectors(autoscaler, selector)),
        )

    def _selectors(self, autoscaler: Autoscaler, own: Selector) -> dict[str, Selector]:
        namespace = autoscaler.metadata.namespace
        others = {f"{namespace}/{one['name']}": parse(one["selector"]) for one in self._trace.get("otherHPAs") or ()}
        return {**others, f"{namespace}/{autoscaler.metadata.name}": own}

    def _target(self, autoscaler: Autoscaler, step: Json) -> ScaleTarget | TargetUnreadable:
        reference = autoscaler.spec.scale_target_ref
        plural = _plural(autoscaler)
        if plural is None:
            group = reference.api_version.rpartition("/")[0]
            return TargetUnreadable(f'no matches for kind "{reference.kind}" in group "{group}"', Hop.MAPPING)
        if step.get("getScaleError"):
            refused = step["getScaleError"]
            return TargetUnreadable(f'{plural} "{reference.name}" not found' if refused == "notfound" else refused)
        scale = step["scale"]
        return ScaleTarget(scale["spec"], scale["status"], scale.get("selector", self._trace["selector"]))

    def _write_scale(self, autoscaler: Autoscaler, decision: Decision, step: Json) -> tuple[list[int], str | None]:
        """Write as upstream does: again after a conflict, a few times; give up at once on anything else."""
        if decision.scale_to is None:
            return [], None
        attempts: list[int] = []
        refusals = list(step.get("scaleUpdateErrors") or ())
        while True:
            attempts.append(decision.scale_to)
            if not refusals:
                return attempts, None
            refusal = refusals.pop(0)
            if refusal != "conflict" or len(attempts) == MOST_SCALE_WRITES:
                name = autoscaler.spec.scale_target_ref.name
                return attempts, _error_text(refusal, _plural(autoscaler) or "", name)


def _plural(autoscaler: Autoscaler) -> str | None:
    reference = autoscaler.spec.scale_target_ref
    return _PLURALS.get((reference.api_version.rpartition("/")[0], reference.kind))


def _error_text(refusal: str, plural: str, name: str) -> str:
    return _CONFLICT.format(plural, name) if refusal == "conflict" else refusal


def _printed(status: Status) -> Json:
    sent = encode_status(status)
    return {
        "currentReplicas": status.current_replicas,
        "desiredReplicas": status.desired_replicas,
        "lastScaleTime": inputs.seconds_of(status.last_scale_time),
        "observedGeneration": status.observed_generation,
        "currentMetrics": sent["currentMetrics"],
        "conditions": [
            {
                "type": one.type,
                "status": one.status,
                "reason": one.reason,
                "message": one.message,
                "lastTransitionTime": inputs.seconds_of(one.last_transition_time),
            }
            for one in status.conditions
        ],
    }


def _told(event: Event) -> Json:
    return {"type": event.type, "reason": event.reason, "message": event.message}
