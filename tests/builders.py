"""Builders of everything a decision is made from: complete, valid, and one override away from the case.

``run_passes`` folds ``decide`` over steps as the controller does: status, history and the size of the target are
carried from one pass to the next, and nothing else is.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from autoscaler.algorithm.decide import decide
from autoscaler.algorithm.metric_context import Scene
from autoscaler.algorithm.write_failures import after_failed_rescale
from autoscaler.defaults import with_defaults
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.decision import Decision, Event
from autoscaler.types.history import History, Recommendation, ScaleEvent
from autoscaler.types.metric_result import Tolerance
from autoscaler.types.observation import (
    Container,
    ExternalReading,
    FailureClass,
    ObjectReading,
    Observation,
    Pod,
    PodReading,
    PodSample,
    Reading,
    ScaleTarget,
    TargetUnreadable,
    UnavailableReading,
)
from autoscaler.types.spec import (
    AVERAGE_VALUE,
    CONTAINER_RESOURCE,
    EXTERNAL,
    OBJECT,
    PODS,
    RESOURCE,
    UTILIZATION,
    VALUE,
    Behavior,
    ContainerResourceSource,
    ExternalSource,
    Fallback,
    Metric,
    MetricIdentifier,
    MetricTarget,
    ObjectReference,
    ObjectSource,
    PodsSource,
    Policy,
    ResourceSource,
    ScalingRules,
    Spec,
)
from autoscaler.types.status import TRUE, Condition, ExternalMetricStatus, MetricStatus, MetricValue, Status
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import LabelSelector
from autoscaler.wire import decode_status, encode_status

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALL_ON = FeatureGates()
NO_FALLBACK = FeatureGates(HPAExternalMetricFallback=False)
NO_ZERO = FeatureGates(HPAScaleToZero=False)
SETTINGS = Settings()
TENTH = Tolerance(0.1, 0.1)
REFUSED = "unable to fetch metrics from external metrics API: connection refused"


def ago(seconds: float) -> datetime:
    """Give the moment that many seconds before NOW."""
    return NOW - timedelta(seconds=seconds)


def later(seconds: float) -> datetime:
    """Give the moment that many seconds after NOW."""
    return NOW + timedelta(seconds=seconds)


# --- what the user asked for -----------------------------------------------------------------------------------------


def make_fallback(replicas: int | None = 10, seconds: int | None = 180, strategy: str | None = "Static") -> Fallback:
    return Fallback(replicas, seconds, strategy)


def make_external_metric(
    name: str = "queue_depth",
    *,
    average: str | None = "5",
    value: str | None = None,
    selector: Mapping[str, str] | None = None,
    fallback: Fallback | None = None,
) -> Metric:
    target = _value_target(value) if value is not None else _average_target(average)
    return Metric(type=EXTERNAL, external=ExternalSource(_identifier(name, selector), target, fallback))


def make_object_metric(
    name: str = "requests", *, average: str | None = None, value: str | None = "15", kind: str = "Ingress"
) -> Metric:
    target = _average_target(average) if average is not None else _value_target(value)
    described = ObjectReference(kind, "front", "networking.k8s.io/v1")
    return Metric(type=OBJECT, object=ObjectSource(described, target, _identifier(name)))


def make_pods_metric(name: str = "rps", *, average: str = "10") -> Metric:
    return Metric(type=PODS, pods=PodsSource(_identifier(name), _average_target(average)))


def make_resource_metric(name: str = "cpu", *, utilization: int | None = 50, average: str | None = None) -> Metric:
    return Metric(type=RESOURCE, resource=ResourceSource(name, _resource_target(utilization, average)))


def make_container_metric(
    name: str = "cpu", *, container: str = "app", utilization: int | None = 50, average: str | None = None
) -> Metric:
    source = ContainerResourceSource(name, _resource_target(utilization, average), container)
    return Metric(type=CONTAINER_RESOURCE, container_resource=source)


def _resource_target(utilization: int | None, average: str | None) -> MetricTarget:
    if average is not None:
        return _average_target(average)
    return MetricTarget(type=UTILIZATION, average_utilization=utilization)


def _average_target(average: str | None) -> MetricTarget:
    return MetricTarget(type=AVERAGE_VALUE, average_value=None if average is None else Quantity.parse(average))


def _value_target(value: str | None) -> MetricTarget:
    return MetricTarget(type=VALUE, value=None if value is None else Quantity.parse(value))


def _identifier(name: str, selector: Mapping[str, str] | None = None) -> MetricIdentifier:
    return MetricIdentifier(name, None if selector is None else LabelSelector(selector))


def make_rules(
    *policies: Policy, window: int | None = None, select: str | None = None, tolerance: str | None = None
) -> ScalingRules:
    return ScalingRules(window, select, policies or None, None if tolerance is None else Quantity.parse(tolerance))


def make_behavior(up: ScalingRules | None = None, down: ScalingRules | None = None) -> Behavior:
    """Make a behavior with Kubernetes' defaults in whatever is not said."""
    filled = with_defaults(Spec(behavior=Behavior(up, down))).behavior
    assert filled is not None
    return filled


AT_ONCE = make_behavior(down=make_rules(window=0))
"""Nothing waits for a window."""


def make_spec(*metrics: Metric, minimum: int | None = 1, maximum: int = 100, **parts: object) -> Spec:
    spec = Spec(
        scale_target_ref=ObjectReference("Deployment", "web", "apps/v1"),
        min_replicas=minimum,
        max_replicas=maximum,
        metrics=metrics or (make_external_metric(),),
    )
    return replace(spec, **parts)


def make_autoscaler(spec: Spec | None = None, status: Status = Status(), generation: int = 1) -> Autoscaler:  # noqa: B008 - frozen
    return Autoscaler(Metadata("web", "shop", generation=generation), spec or make_spec(), status)


# --- what is true now ------------------------------------------------------------------------------------------------


def make_container(name: str = "app", *, restart: str | None = None, **requests: str) -> Container:
    return Container(name, {key: Quantity.parse(text) for key, text in requests.items()}, restart)


def make_pod(name: str = "web-0", **parts: object) -> Pod:
    """Make a pod that runs, has been ready for an hour, and requests a whole cpu."""
    pod = Pod(
        name=name,
        phase="Running",
        labels={"app": "web"},
        containers=(make_container(cpu="1", memory="1Gi"),),
        ready=TRUE,
        ready_since=ago(3600),
        started=ago(3660),
    )
    return replace(pod, **parts)


def make_pods(count: int) -> tuple[Pod, ...]:
    return tuple(make_pod(f"web-{index}") for index in range(count))


def make_sample(milli: int, at: datetime = NOW, window: float = 30) -> PodSample:
    return PodSample(milli, at, timedelta(seconds=window))


def make_samples(*milli: int) -> dict[str, PodSample]:
    """Give web-0, web-1, … these numbers."""
    return {f"web-{index}": make_sample(number) for index, number in enumerate(milli)}


def pods_say(*milli: int) -> PodReading:
    return PodReading(make_samples(*milli), NOW)


def queue_of(*values: float) -> ExternalReading:
    return ExternalReading(tuple(round(value * 1000) for value in values), NOW)


def object_says(value: float) -> ObjectReading:
    return ObjectReading(round(value * 1000), NOW)


def unreadable(message: str = REFUSED, failure: FailureClass = FailureClass.REFUSED) -> UnavailableReading:
    return UnavailableReading(message, failure)


def make_target(replicas: int = 3, status_replicas: int | None = None, selector: str = "app=web") -> ScaleTarget:
    return ScaleTarget(replicas, replicas if status_replicas is None else status_replicas, selector)


def make_observation(
    *readings: Reading, replicas: int = 3, target: ScaleTarget | TargetUnreadable | None = None, **parts: object
) -> Observation:
    """Make an observation in which the target has as many ready pods as it asks for."""
    seen = Observation(
        target=target or make_target(replicas), pods=make_pods(replicas), readings=readings or (queue_of(15),)
    )
    return replace(seen, **parts)


def make_scene(replicas: int = 3, status_replicas: int | None = None, **parts: object) -> Scene:
    scene = Scene("shop", make_target(replicas, status_replicas), make_pods(replicas), TENTH, SETTINGS, ALL_ON, NOW)
    return replace(scene, **parts)


# --- what was --------------------------------------------------------------------------------------------------------


def recommended(*entries: tuple[int, float]) -> tuple[Recommendation, ...]:
    """Make recommendations from pairs of replicas and seconds ago."""
    return tuple(Recommendation(replicas, ago(seconds)) for replicas, seconds in entries)


def rescaled(*entries: tuple[int, float]) -> tuple[ScaleEvent, ...]:
    """Make rescales from pairs of change and seconds ago."""
    return tuple(ScaleEvent(change, ago(seconds)) for change, seconds in entries)


def long_at(replicas: int) -> History:
    """Make the history of an autoscaler whose windows have all passed."""
    return History(recommended((replicas, 36000)))


def make_condition(
    kind: str, status: str = TRUE, *, reason: str = "", message: str = "", since: float = 600
) -> Condition:
    return Condition(kind, status, ago(since), reason or kind, message)


WENT_TO_ZERO = make_condition("ScaledToZero", message="the HPA controller scaled the workload to zero")


def at_zero_by_us(*slots: MetricStatus) -> Status:
    return Status(current_metrics=slots or None, conditions=(WENT_TO_ZERO,))


# --- passes ----------------------------------------------------------------------------------------------------------


def decide_once(
    spec: Spec | None = None,
    seen: Observation | None = None,
    *,
    status: Status = Status(),  # noqa: B008 - frozen
    past: History = History(),  # noqa: B008 - frozen
    settings: Settings = SETTINGS,
    gates: FeatureGates = ALL_ON,
    now: datetime = NOW,
) -> Decision:
    return decide(
        autoscaler=make_autoscaler(spec, status),
        seen=seen or make_observation(),
        past=past,
        settings=settings,
        gates=gates,
        now=now,
    )


@dataclass(frozen=True)
class Step:
    """One pass: when, what the metrics answer, and whatever else is new in the world since the pass before."""

    after: float
    """Seconds after NOW."""

    readings: tuple[Reading, ...]
    replicas: int | None = None
    """Someone scaled by hand."""

    status_replicas: int | None = None
    spec: Spec | None = None
    """Someone edited the spec."""

    target: TargetUnreadable | None = None
    selector: str = "app=web"
    gates: FeatureGates | None = None
    """The operator switched gates, which stay so."""

    write_fails: str | None = None
    restarted: bool = False
    """A new leader: what was remembered is gone, and status has been through the wire."""


def passes_at(times: Iterable[float], *readings: Reading) -> list[Step]:
    """Make steps at these times that all read the same."""
    return [Step(time, readings) for time in times]


def run_passes(
    spec: Spec,
    steps: Sequence[Step],
    *,
    replicas: int = 3,
    gates: FeatureGates = ALL_ON,
    settings: Settings = SETTINGS,
    status: Status = Status(),  # noqa: B008 - frozen
    past: History | None = None,
) -> list[Decision]:
    """Fold ``decide`` over the steps."""
    autoscaler, history = make_autoscaler(spec, status), long_at(replicas) if past is None else past
    decisions: list[Decision] = []
    for step in steps:
        replicas = replicas if step.replicas is None else step.replicas
        gates = step.gates or gates
        autoscaler = replace(autoscaler, spec=step.spec or autoscaler.spec)
        if step.restarted:
            history = History()
            autoscaler = replace(autoscaler, status=through_the_wire(autoscaler.status))
        target = step.target or make_target(replicas, step.status_replicas, step.selector)
        decision = decide(
            autoscaler=autoscaler,
            seen=Observation(target, make_pods(replicas), step.readings),
            past=history,
            settings=settings,
            gates=gates,
            now=later(step.after),
        )
        if step.write_fails is not None:
            decision = after_failed_rescale(decision, autoscaler, history, step.write_fails)
        replicas = replicas if decision.scale_to is None else decision.scale_to
        autoscaler, history = replace(autoscaler, status=decision.status), decision.history
        decisions.append(decision)
    return decisions


def through_the_wire(status: Status) -> Status:
    return decode_status(json.loads(json.dumps(encode_status(status))))


# --- what was concluded ----------------------------------------------------------------------------------------------


def condition_of(decision: Decision, kind: str) -> tuple[str, str, str] | None:
    """Give a condition's status, reason and message."""
    found = decision.status.condition(kind)
    return None if found is None else (found.status, found.reason, found.message)


def reasons_of(decision: Decision) -> dict[str, tuple[str, str]]:
    """Give every condition's status and reason, in their order."""
    return {one.type: (one.status, one.reason) for one in decision.status.conditions}


def told(decision: Decision) -> list[tuple[str, str]]:
    """Give the reason and message of every event, the late ones last."""
    return [(event.reason, event.message) for event in (*decision.events, *decision.late_events)]


def events_of(decisions: Iterable[Decision]) -> list[list[str]]:
    """Give the reasons of each pass's events."""
    return [[event.reason for event in (*one.events, *one.late_events)] for one in decisions]


def notice(reason: str, message: str) -> Event:
    return Event("Normal", reason, message)


def external_slot(name: str = "queue_depth", *, average: str | None = None, **parts: object) -> MetricStatus:
    """Make the entry of status.currentMetrics of an external metric."""
    current = MetricValue(average_value=None if average is None else Quantity.parse(average))
    entry = ExternalMetricStatus(MetricIdentifier(name), current)
    return MetricStatus(type=EXTERNAL, external=replace(entry, **parts))


def running(name: str = "queue_depth", since: datetime = NOW, **parts: object) -> MetricStatus:
    """Make the entry of a metric whose clock is running."""
    return external_slot(name, fallback_status="Normal", first_failure_time=since, **parts)


def fallen_back(
    name: str = "queue_depth", since: datetime = NOW, replicas: int = 10, captured: int = 3, **parts: object
) -> MetricStatus:
    """Make the entry of a metric whose fallback speaks."""
    return external_slot(
        name,
        fallback_status="Fallback",
        first_failure_time=since,
        fallback_replicas=replicas,
        captured_replicas=captured,
        **parts,
    )
