"""Verdicts of the metrics that have one number for the whole workload: Object and External."""

from autoscaler.algorithm import calculate
from autoscaler.algorithm.metric_context import Failure, Scene, due_to_pods, taken
from autoscaler.types.metric_result import Answer, Calculation, Incalculable, Proposal, Trouble
from autoscaler.types.observation import BadSelector, ExternalReading, ObjectReading, Reading
from autoscaler.types.spec import AVERAGE_VALUE, EXTERNAL, OBJECT, VALUE, ExternalSource, MetricTarget, ObjectSource
from autoscaler.types.status import ExternalMetricStatus, MetricStatus, MetricValue, ObjectMetricStatus
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import go_syntax

FAILED_OBJECT = "FailedGetObjectMetric"
FAILED_EXTERNAL = "FailedGetExternalMetric"

_NEITHER = "neither a value target nor an average value target was set"
_NO_OBJECT_TARGET = Failure(f"invalid object metric source: {_NEITHER}", Trouble.SPEC)
_NO_EXTERNAL_TARGET = Failure(f"invalid external metric source: {_NEITHER}", Trouble.SPEC)


def propose_object(source: ObjectSource, reading: Reading, scene: Scene) -> Answer:
    """Ask a metric of one object."""
    result = _object(source, reading, scene)
    averages = source.target.type == AVERAGE_VALUE
    if isinstance(result, Failure):
        step = f"failed to get {source.metric.name} object metric: "
        wrapped = averages and result.trouble is Trouble.RETRIEVAL
        return result.of(FAILED_OBJECT, lambda inner: f"failed to get object metric value: {step * wrapped}{inner}")
    slot = ObjectMetricStatus(source.metric, _shown(result, averages=averages), source.described_object)
    return Proposal(result.replicas, MetricStatus(type=OBJECT, object=slot), result)


def propose_external(source: ExternalSource, reading: Reading, scene: Scene) -> Answer:
    """Ask a metric of the outside world."""
    result = _external(source, reading, scene)
    averages = source.target.average_value is not None
    if isinstance(result, Failure):
        name = source.metric.name
        step = f"failed to get {name} external metric: " if averages else f"failed to get external metric {name}: "
        wrapped = result is not _NO_EXTERNAL_TARGET
        return result.of(
            FAILED_EXTERNAL, lambda inner: f"failed to get {name} external metric value: {step * wrapped}{inner}"
        )
    slot = ExternalMetricStatus(source.metric, _shown(result, averages=averages))
    return Proposal(result.replicas, MetricStatus(type=EXTERNAL, external=slot), result)


def _object(source: ObjectSource, reading: Reading, scene: Scene) -> Calculation | Failure:
    """Reckon; here, and only here, the target's type decides which of its fields counts."""
    goal = _object_goal(source.target)
    if goal is None:
        return Failure(reading.message, Trouble.SPEC) if isinstance(reading, BadSelector) else _NO_OBJECT_TARGET
    described = source.described_object
    asking = f"unable to get metric {source.metric.name} on {described.kind} {scene.namespace}/{described.name}"
    seen = taken(reading, ObjectReading, asking)
    if isinstance(seen, Failure):
        return seen
    if source.target.type == VALUE:
        return _from_total(seen.milli, goal, scene)
    return calculate.from_object_average(seen.milli, goal.milli(), scene.target.status_replicas, scene.tolerance)


def _object_goal(target: MetricTarget) -> Quantity | None:
    if target.type == VALUE:
        return target.value
    return target.average_value if target.type == AVERAGE_VALUE else None


def _external(source: ExternalSource, reading: Reading, scene: Scene) -> Calculation | Failure:
    """Reckon; an average target wins over a value, whatever the target's type says."""
    averages = source.target.average_value is not None
    goal = source.target.average_value if averages else source.target.value
    if goal is None:
        return _NO_EXTERNAL_TARGET
    seen = reading if isinstance(reading, ExternalReading) else _unread(source, reading, scene)
    if isinstance(seen, Failure):
        return seen
    if averages:
        total = calculate.total_of_average_target(seen.milli)
        return calculate.from_external_average(total, goal.milli(), scene.target.status_replicas, scene.tolerance)
    return _from_total(calculate.total_of_value_target(seen.milli), goal, scene)


def _unread(source: ExternalSource, reading: Reading, scene: Scene) -> ExternalReading | Failure:
    """Say why there is no reading; apart from the good path, which need not pay for these words."""
    selector = go_syntax(source.metric.selector)
    return taken(
        reading, ExternalReading, f"unable to get external metric {scene.namespace}/{source.metric.name}/{selector}"
    )


def _from_total(usage: int, goal: Quantity, scene: Scene) -> Calculation | Failure:
    result = calculate.from_total(usage, goal.milli(), scene.target.replicas, scene.tolerance, scene.pods)
    return due_to_pods(result) if isinstance(result, Incalculable) else result


def _shown(result: Calculation, *, averages: bool) -> MetricValue:
    """Put the number where status has it: in the field that the target uses."""
    quantity = Quantity.from_milli(result.usage)
    return MetricValue(average_value=quantity) if averages else MetricValue(value=quantity)
