"""Builders of the inputs of a decision, with valid defaults for everything that a test does not set.

``run_reconciles`` calls ``decide`` repeatedly as the controller does: status, history and the target's replicas are
carried from one reconcile to the next.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from autoscaler.algorithm.decide import decide
from autoscaler.algorithm.metric_context import MetricContext
from autoscaler.algorithm.propose import propose
from autoscaler.algorithm.write_failures import after_failed_rescale
from autoscaler.defaults import with_defaults
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.decision import Decision, Event
from autoscaler.types.history import History, Recommendation, ScaleEvent
from autoscaler.types.metric_result import Proposal, Tolerance
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
    UnavailableReading,
    UnavailableTarget,
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
from autoscaler.wire import decode_status, encode

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALL_GATES = FeatureGates()
FALLBACK_GATE_OFF = FeatureGates(HPAExternalMetricFallback=False)
SCALE_TO_ZERO_GATE_OFF = FeatureGates(HPAScaleToZero=False)
SETTINGS = Settings()
TOLERANCE = Tolerance(0.1, 0.1)
CONNECTION_REFUSED = "unable to fetch metrics from external metrics API: connection refused"


def ago(seconds: float) -> datetime:
    """Return NOW minus some seconds."""
    return NOW - timedelta(seconds=seconds)


def later(seconds: float) -> datetime:
    """Return NOW plus some seconds."""
    return NOW + timedelta(seconds=seconds)


# --- spec ------------------------------------------------------------------------------------------------------------


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
    """Make a behavior with Kubernetes' defaults."""
    filled = with_defaults(Spec(behavior=Behavior(up, down))).behavior
    assert filled is not None
    return filled


NO_STABILIZATION = make_behavior(down=make_rules(window=0))


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


# --- observation -----------------------------------------------------------------------------------------------------


def make_container(name: str = "app", *, restart: str | None = None, **requests: str) -> Container:
    return Container(name, {key: Quantity.parse(text) for key, text in requests.items()}, restart)


def make_pod(name: str = "web-0", **parts: object) -> Pod:
    """Make a running pod that has been ready for an hour and requests 1 cpu."""
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
    """Make samples of the pods web-0, web-1, …"""
    return {f"web-{index}": make_sample(number) for index, number in enumerate(milli)}


def pod_reading(*milli: int) -> PodReading:
    return PodReading(make_samples(*milli), NOW)


def external_reading(*values: float) -> ExternalReading:
    return ExternalReading(tuple(round(value * 1000) for value in values), NOW)


def object_reading(value: float) -> ObjectReading:
    return ObjectReading(round(value * 1000), NOW)


def unavailable_reading(
    message: str = CONNECTION_REFUSED, failure: FailureClass = FailureClass.REFUSED
) -> UnavailableReading:
    return UnavailableReading(message, failure)


def make_target(replicas: int = 3, status_replicas: int | None = None, selector: str = "app=web") -> ScaleTarget:
    return ScaleTarget(replicas, replicas if status_replicas is None else status_replicas, selector)


def make_observation(
    *readings: Reading, replicas: int = 3, target: ScaleTarget | UnavailableTarget | None = None, **parts: object
) -> Observation:
    """Make an observation with as many ready pods as the target's replicas."""
    observation = Observation(
        target=target or make_target(replicas), pods=make_pods(replicas), readings=readings or (external_reading(15),)
    )
    return replace(observation, **parts)


def make_metric_context(replicas: int = 3, status_replicas: int | None = None, **parts: object) -> MetricContext:
    target, pods = make_target(replicas, status_replicas), make_pods(replicas)
    context = MetricContext("shop", target, pods, TOLERANCE, SETTINGS, ALL_GATES, NOW)
    return replace(context, **parts)


def proposal_of(metric: Metric, reading: Reading, context: MetricContext) -> Proposal:
    result = propose(metric, reading, context)
    assert isinstance(result, Proposal), result
    return result


# --- history and status ----------------------------------------------------------------------------------------------


def make_recommendations(*entries: tuple[int, float]) -> tuple[Recommendation, ...]:
    """Make recommendations from pairs of replicas and seconds ago."""
    return tuple(Recommendation(replicas, ago(seconds)) for replicas, seconds in entries)


def make_scale_events(*entries: tuple[int, float]) -> tuple[ScaleEvent, ...]:
    """Make rescales from pairs of change and seconds ago."""
    return tuple(ScaleEvent(change, ago(seconds)) for change, seconds in entries)


def settled_history(replicas: int) -> History:
    """Make a history whose only recommendation is older than all windows."""
    return History(make_recommendations((replicas, 36000)))


def make_condition(
    kind: str, status: str = TRUE, *, reason: str = "", message: str = "", since: float = 600
) -> Condition:
    return Condition(kind, status, ago(since), reason or kind, message)


SCALED_TO_ZERO = make_condition("ScaledToZero", message="the HPA controller scaled the workload to zero")


def scaled_to_zero_status(*metrics: MetricStatus) -> Status:
    return Status(current_metrics=metrics or None, conditions=(SCALED_TO_ZERO,))


# --- decisions -------------------------------------------------------------------------------------------------------


def decide_once(
    spec: Spec | None = None,
    observation: Observation | None = None,
    *,
    status: Status = Status(),  # noqa: B008 - frozen
    history: History = History(),  # noqa: B008 - frozen
    settings: Settings = SETTINGS,
    gates: FeatureGates = ALL_GATES,
    now: datetime = NOW,
) -> Decision:
    return decide(
        autoscaler=make_autoscaler(spec, status),
        observation=observation or make_observation(),
        history=history,
        settings=settings,
        gates=gates,
        now=now,
    )


@dataclass(frozen=True)
class ReconcileInput:
    """The inputs of one reconcile: its time, the metric readings, and changes since the previous reconcile."""

    after: float
    """Seconds after NOW."""

    readings: tuple[Reading, ...]
    replicas: int | None = None
    """The target was scaled by hand."""

    status_replicas: int | None = None
    spec: Spec | None = None
    """The spec was changed."""

    target: UnavailableTarget | None = None
    selector: str = "app=web"
    gates: FeatureGates | None = None
    """The feature gates were changed, permanently."""

    write_fails: str | None = None
    restarted: bool = False
    """A new leader starts without history, and with the status as decoded from JSON."""


def inputs_at(times: Iterable[float], *readings: Reading) -> list[ReconcileInput]:
    """Make inputs at these times with the same readings."""
    return [ReconcileInput(time, readings) for time in times]


def run_reconciles(
    spec: Spec,
    inputs: Sequence[ReconcileInput],
    *,
    replicas: int = 3,
    gates: FeatureGates = ALL_GATES,
    settings: Settings = SETTINGS,
    status: Status = Status(),  # noqa: B008 - frozen
    history: History | None = None,
) -> list[Decision]:
    """Return the decisions of consecutive reconciles."""
    autoscaler = make_autoscaler(spec, status)
    history = settled_history(replicas) if history is None else history
    decisions: list[Decision] = []
    for reconcile in inputs:
        replicas = replicas if reconcile.replicas is None else reconcile.replicas
        gates = reconcile.gates or gates
        autoscaler = replace(autoscaler, spec=reconcile.spec or autoscaler.spec)
        if reconcile.restarted:
            history = History()
            autoscaler = replace(autoscaler, status=encode_and_decode(autoscaler.status))
        target = reconcile.target or make_target(replicas, reconcile.status_replicas, reconcile.selector)
        decision = decide(
            autoscaler=autoscaler,
            observation=Observation(target, make_pods(replicas), reconcile.readings),
            history=history,
            settings=settings,
            gates=gates,
            now=later(reconcile.after),
        )
        if reconcile.write_fails is not None:
            decision = after_failed_rescale(decision, autoscaler, history, reconcile.write_fails)
        replicas = replicas if decision.scale_to is None else decision.scale_to
        autoscaler, history = replace(autoscaler, status=decision.status), decision.history
        decisions.append(decision)
    return decisions


def encode_and_decode(status: Status) -> Status:
    return decode_status(json.loads(json.dumps(encode(status))))


# --- contents of decisions -------------------------------------------------------------------------------------------


def condition_content(decision: Decision, kind: str) -> tuple[str, str, str] | None:
    """Return status, reason and message of a condition."""
    condition = decision.status.condition(kind)
    return None if condition is None else (condition.status, condition.reason, condition.message)


def transition_time(decision: Decision, kind: str) -> datetime | None:
    condition = decision.status.condition(kind)
    return None if condition is None else condition.last_transition_time


def condition_reasons(decision: Decision) -> dict[str, tuple[str, str]]:
    """Return status and reason of all conditions, in order."""
    return {one.type: (one.status, one.reason) for one in decision.status.conditions}


def event_messages(decision: Decision) -> list[tuple[str, str]]:
    """Return reason and message of all events, the late ones last."""
    return [(event.reason, event.message) for event in (*decision.events, *decision.late_events)]


def event_reasons(decisions: Iterable[Decision]) -> list[list[str]]:
    """Return the reasons of the events of each decision."""
    return [[event.reason for event in (*one.events, *one.late_events)] for one in decisions]


def normal_event(reason: str, message: str) -> Event:
    return Event("Normal", reason, message)


def external_status(name: str = "queue_depth", *, average: str | None = None, **parts: Any) -> MetricStatus:
    """Make the status of an external metric."""
    current = MetricValue(average_value=None if average is None else Quantity.parse(average))
    entry = ExternalMetricStatus(MetricIdentifier(name), current)
    return MetricStatus(type=EXTERNAL, external=replace(entry, **parts))


def failing_status(name: str = "queue_depth", since: datetime = NOW, **parts: Any) -> MetricStatus:
    """Make the status of a failing metric that is not yet in fallback."""
    return external_status(name, fallback_status="Normal", first_failure_time=since, **parts)


def fallback_status(
    name: str = "queue_depth", since: datetime = NOW, replicas: int = 10, captured: int = 3, **parts: Any
) -> MetricStatus:
    """Make the status of a metric in fallback."""
    return external_status(
        name,
        fallback_status="Fallback",
        first_failure_time=since,
        fallback_replicas=replicas,
        captured_replicas=captured,
        **parts,
    )
