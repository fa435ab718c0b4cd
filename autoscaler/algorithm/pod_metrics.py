"""Results of metrics with a value per pod: Resource, ContainerResource and Pods."""

from autoscaler.algorithm import calculate
from autoscaler.algorithm.metric_context import MetricContext, MetricFailure, expect_reading, pods_failure
from autoscaler.algorithm.pods import group_pods, requests_of
from autoscaler.types import spec
from autoscaler.types.metric_result import Calculation, CalculationFailure, MetricResult, Proposal, UnavailableCause
from autoscaler.types.observation import PodReading, Reading
from autoscaler.types.status import (
    ContainerResourceMetricStatus,
    MetricStatus,
    MetricValue,
    PodsMetricStatus,
    ResourceMetricStatus,
)
from autoscaler.values.quantity import BINARY_SI, DECIMAL_SI, Quantity

FAILED_RESOURCE = "FailedGetResourceMetric"
FAILED_CONTAINER_RESOURCE = "FailedGetContainerResourceMetric"
FAILED_PODS = "FailedGetPodsMetric"

_NO_TARGET = MetricFailure(
    "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set",
    UnavailableCause.SPEC,
)
_NO_AVERAGE = MetricFailure("invalid pods metric source: no average value target was set", UnavailableCause.SPEC)


def propose_resource(source: spec.ResourceSource, reading: Reading, context: MetricContext) -> MetricResult:
    result = _resource(source.name, "", source.target, reading, context)
    if isinstance(result, MetricFailure):
        return result.to_unavailable(FAILED_RESOURCE, f"failed to get {source.name} resource metric value: ")
    current = ResourceMetricStatus(source.name, _resource_value(source.name, result))
    return Proposal(result.replicas, MetricStatus(type=spec.RESOURCE, resource=current), result)


def propose_container_resource(
    source: spec.ContainerResourceSource, reading: Reading, context: MetricContext
) -> MetricResult:
    result = _resource(source.name, source.container, source.target, reading, context)
    if isinstance(result, MetricFailure):
        prefix = f"failed to get {source.container} container metric value: "
        return result.to_unavailable(FAILED_CONTAINER_RESOURCE, prefix)
    current = ContainerResourceMetricStatus(source.name, _resource_value(source.name, result), source.container)
    return Proposal(result.replicas, MetricStatus(type=spec.CONTAINER_RESOURCE, container_resource=current), result)


def propose_pods(source: spec.PodsSource, reading: Reading, context: MetricContext) -> MetricResult:
    result = _pods(source, reading, context)
    if isinstance(result, MetricFailure):
        return result.to_unavailable(FAILED_PODS, "failed to get pods metric value: ")
    current = PodsMetricStatus(source.metric, MetricValue(average_value=Quantity.from_milli(result.usage)))
    return Proposal(result.replicas, MetricStatus(type=spec.PODS, pods=current), result)


def _pods(source: spec.PodsSource, reading: Reading, context: MetricContext) -> Calculation | MetricFailure:
    pod_reading = expect_reading(reading, PodReading, f"unable to get metric {source.metric.name}")
    if isinstance(pod_reading, MetricFailure):
        return pod_reading
    if source.target.average_value is None:
        return _NO_AVERAGE
    return _calculate(pod_reading, calculate.AverageValueTarget(source.target.average_value.milli()), "", "", context)


def _resource(
    name: str, container: str, target: spec.MetricTarget, reading: Reading, context: MetricContext
) -> Calculation | MetricFailure:
    """Calculate. Like upstream, averageValue takes precedence over averageUtilization, whatever the target's type."""
    if target.average_value is None and target.average_utilization is None:
        return _NO_TARGET
    measured = "utilization" if target.average_value is None else "usage"
    prefix = f"failed to get {name} {measured}: "
    pod_reading = expect_reading(reading, PodReading, f"{prefix}unable to get metrics for resource {name}")
    if isinstance(pod_reading, MetricFailure):
        return pod_reading
    if target.average_value is not None:
        return _calculate(
            pod_reading, calculate.AverageValueTarget(target.average_value.milli()), name, prefix, context
        )
    requests = requests_of(context.pods, name, container, pod_level=context.gates.PodLevelResources)
    percent = target.average_utilization or 0
    if isinstance(requests, CalculationFailure):
        return _calculate(pod_reading, calculate.UtilizationTarget(percent, {}), name, prefix, context, requests)
    return _calculate(pod_reading, calculate.UtilizationTarget(percent, requests), name, prefix, context)


def _calculate(
    reading: PodReading,
    target: calculate.PodTarget,
    resource: str,
    prefix: str,
    context: MetricContext,
    requests_failure: CalculationFailure | None = None,
) -> Calculation | MetricFailure:
    """Group the pods and calculate. Upstream reports missing pods and missing metrics before missing requests."""
    if not context.pods:
        return pods_failure(calculate.NO_PODS, prefix)
    groups = group_pods(context.pods, reading.samples, resource, context.settings, context.now)
    result = calculate.from_pods(reading.samples, groups, context.target.replicas, context.tolerance, target)
    if requests_failure is not None and result is not calculate.NO_METRICS:
        return pods_failure(requests_failure, prefix)
    return pods_failure(result, prefix) if isinstance(result, CalculationFailure) else result


def _resource_value(resource: str, result: Calculation) -> MetricValue:
    """Return the value for the status: memory with binary suffixes, like the metrics API, others with decimal ones."""
    notation = BINARY_SI if resource == "memory" else DECIMAL_SI
    return MetricValue(
        average_value=Quantity.from_milli(result.usage, notation), average_utilization=result.utilization
    )
