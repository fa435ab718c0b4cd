"""Results of metrics with one value for the whole workload: Object and External."""

from autoscaler.algorithm import calculate
from autoscaler.algorithm.metric_context import MetricContext, MetricFailure, expect_reading, pods_failure
from autoscaler.types.metric_result import Calculation, CalculationFailure, MetricResult, Proposal, UnavailableCause
from autoscaler.types.observation import BadSelector, ExternalReading, ObjectReading, Reading
from autoscaler.types.spec import AVERAGE_VALUE, EXTERNAL, OBJECT, VALUE, ExternalSource, MetricTarget, ObjectSource
from autoscaler.types.status import ExternalMetricStatus, MetricStatus, MetricValue, ObjectMetricStatus
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import go_syntax

FAILED_OBJECT = "FailedGetObjectMetric"
FAILED_EXTERNAL = "FailedGetExternalMetric"

_NEITHER = "neither a value target nor an average value target was set"
_NO_OBJECT_TARGET = MetricFailure(f"invalid object metric source: {_NEITHER}", UnavailableCause.SPEC)
_NO_EXTERNAL_TARGET = MetricFailure(f"invalid external metric source: {_NEITHER}", UnavailableCause.SPEC)


def propose_object(source: ObjectSource, reading: Reading, context: MetricContext) -> MetricResult:
    result = _object(source, reading, context)
    is_average = source.target.type == AVERAGE_VALUE
    if isinstance(result, MetricFailure):
        prefix = "failed to get object metric value: "
        if is_average and result.cause is UnavailableCause.RETRIEVAL:
            prefix += f"failed to get {source.metric.name} object metric: "
        return result.to_unavailable(FAILED_OBJECT, prefix)
    status = ObjectMetricStatus(source.metric, _metric_value(result, is_average=is_average), source.described_object)
    return Proposal(result.replicas, MetricStatus(type=OBJECT, object=status), result)


def propose_external(source: ExternalSource, reading: Reading, context: MetricContext) -> MetricResult:
    result = _external(source, reading, context)
    is_average = source.target.average_value is not None
    if isinstance(result, MetricFailure):
        name = source.metric.name
        prefix = f"failed to get {name} external metric value: "
        if result is not _NO_EXTERNAL_TARGET:
            prefix += (
                f"failed to get {name} external metric: " if is_average else f"failed to get external metric {name}: "
            )
        return result.to_unavailable(FAILED_EXTERNAL, prefix)
    status = ExternalMetricStatus(source.metric, _metric_value(result, is_average=is_average))
    return Proposal(result.replicas, MetricStatus(type=EXTERNAL, external=status), result)


def _object(source: ObjectSource, reading: Reading, context: MetricContext) -> Calculation | MetricFailure:
    """Calculate. Only for Object metrics the target's type determines which of its fields applies."""
    target = _object_target(source.target)
    if target is None:
        if isinstance(reading, BadSelector):
            return MetricFailure(reading.message, UnavailableCause.SPEC)
        return _NO_OBJECT_TARGET
    described = source.described_object
    prefix = f"unable to get metric {source.metric.name} on {described.kind} {context.namespace}/{described.name}"
    value = expect_reading(reading, ObjectReading, prefix)
    if isinstance(value, MetricFailure):
        return value
    if source.target.type == VALUE:
        return _from_total(value.milli, target, context)
    return _from_average(value.milli, target, context, caps_overflow=False)


def _object_target(target: MetricTarget) -> Quantity | None:
    if target.type == VALUE:
        return target.value
    return target.average_value if target.type == AVERAGE_VALUE else None


def _external(source: ExternalSource, reading: Reading, context: MetricContext) -> Calculation | MetricFailure:
    """Calculate. Like upstream, averageValue takes precedence over value, whatever the target's type."""
    is_average = source.target.average_value is not None
    target = source.target.average_value if is_average else source.target.value
    if target is None:
        return _NO_EXTERNAL_TARGET
    series = reading if isinstance(reading, ExternalReading) else _failure_of(source, reading, context)
    if isinstance(series, MetricFailure):
        return series
    if is_average:
        return _from_average(calculate.total_of_average_target(series.milli), target, context, caps_overflow=True)
    return _from_total(calculate.total_of_value_target(series.milli), target, context)


def _failure_of(source: ExternalSource, reading: Reading, context: MetricContext) -> ExternalReading | MetricFailure:
    """Return the failure. Separate from ``_external``, so that a successful read does not format the message."""
    selector = go_syntax(source.metric.selector)
    return expect_reading(
        reading, ExternalReading, f"unable to get external metric {context.namespace}/{source.metric.name}/{selector}"
    )


def _from_average(usage: int, target: Quantity, context: MetricContext, *, caps_overflow: bool) -> Calculation:
    replicas, tolerance = context.target.status_replicas, context.tolerance
    return calculate.from_average(usage, target.milli(), replicas, tolerance, caps_overflow=caps_overflow)


def _from_total(usage: int, target: Quantity, context: MetricContext) -> Calculation | MetricFailure:
    result = calculate.from_total(usage, target.milli(), context.target.replicas, context.tolerance, context.pods)
    return pods_failure(result) if isinstance(result, CalculationFailure) else result


def _metric_value(result: Calculation, *, is_average: bool) -> MetricValue:
    """Return the value for the status, in the field that corresponds to the target."""
    quantity = Quantity.from_milli(result.usage)
    return MetricValue(average_value=quantity) if is_average else MetricValue(value=quantity)
