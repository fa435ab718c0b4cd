"""Results of metrics with a value per pod: Resource, ContainerResource and Pods."""

from autoscaler.algorithm.calculate import NO_METRICS, NO_PODS, AverageValueTarget, UtilizationTarget, from_pods
from autoscaler.algorithm.metric_context import MetricContext, MetricFailure, expect_reading, pods_failure
from autoscaler.algorithm.pods import group_pods
from autoscaler.algorithm.requests import requests_of
from autoscaler.types.metric_result import Calculation, CalculationFailure, MetricResult, Proposal, UnavailableCause
from autoscaler.types.observation import PodReading, Reading
from autoscaler.types.spec import (
    CONTAINER_RESOURCE,
    PODS,
    RESOURCE,
    ContainerResourceSource,
    MetricTarget,
    PodsSource,
    ResourceSource,
)
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


def propose_resource(source: ResourceSource, reading: Reading, context: MetricContext) -> MetricResult:
    """Return the result of a Resource metric."""
    result = _resource(source.name, "", source.target, reading, context)
    if isinstance(result, MetricFailure):
        return result.to_unavailable(FAILED_RESOURCE, f"failed to get {source.name} resource metric value: ")
    current = _resource_value(source.name, result)
    status = MetricStatus(type=RESOURCE, resource=ResourceMetricStatus(source.name, current))
    return Proposal(result.replicas, status, result)


def propose_container_resource(
    source: ContainerResourceSource, reading: Reading, context: MetricContext
) -> MetricResult:
    """Return the result of a ContainerResource metric."""
    result = _resource(source.name, source.container, source.target, reading, context)
    if isinstance(result, MetricFailure):
        prefix = f"failed to get {source.container} container metric value: "
        return result.to_unavailable(FAILED_CONTAINER_RESOURCE, prefix)
    current = _resource_value(source.name, result)
    status = MetricStatus(
        type=CONTAINER_RESOURCE,
        container_resource=ContainerResourceMetricStatus(source.name, current, source.container),
    )
    return Proposal(result.replicas, status, result)


def propose_pods(source: PodsSource, reading: Reading, context: MetricContext) -> MetricResult:
    """Return the result of a Pods metric."""
    result = _pods(source, reading, context)
    if isinstance(result, MetricFailure):
        return result.to_unavailable(FAILED_PODS, "failed to get pods metric value: ")
    current = MetricValue(average_value=Quantity.from_milli(result.usage))
    status = MetricStatus(type=PODS, pods=PodsMetricStatus(source.metric, current))
    return Proposal(result.replicas, status, result)


def _pods(source: PodsSource, reading: Reading, context: MetricContext) -> Calculation | MetricFailure:
    pod_reading = expect_reading(reading, PodReading, f"unable to get metric {source.metric.name}")
    if isinstance(pod_reading, MetricFailure):
        return pod_reading
    if source.target.average_value is None:
        return _NO_AVERAGE
    return _average(pod_reading, source.target.average_value.milli(), "", "", context)


def _resource(
    name: str, container: str, target: MetricTarget, reading: Reading, context: MetricContext
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
        return _average(pod_reading, target.average_value.milli(), name, prefix, context)
    return _utilization(pod_reading, target.average_utilization or 0, (name, container), prefix, context)


def _average(
    reading: PodReading, target: int, resource: str, prefix: str, context: MetricContext
) -> Calculation | MetricFailure:
    if not context.pods:
        return pods_failure(NO_PODS, prefix)
    groups = group_pods(context.pods, reading.samples, resource, context.settings, context.now)
    result = from_pods(reading.samples, groups, context.target.replicas, context.tolerance, AverageValueTarget(target))
    return pods_failure(result, prefix) if isinstance(result, CalculationFailure) else result


def _utilization(
    reading: PodReading, target: int, resource_and_container: tuple[str, str], prefix: str, context: MetricContext
) -> Calculation | MetricFailure:
    resource, container = resource_and_container
    if not context.pods:
        return pods_failure(NO_PODS, prefix)
    groups = group_pods(context.pods, reading.samples, resource, context.settings, context.now)
    requests = requests_of(context.pods, resource, container, pod_level=context.gates.PodLevelResources)
    utilization_target = UtilizationTarget(target, {} if isinstance(requests, CalculationFailure) else requests)
    result = from_pods(reading.samples, groups, context.target.replicas, context.tolerance, utilization_target)
    if isinstance(requests, CalculationFailure) and result is not NO_METRICS:
        return pods_failure(requests, prefix)
    return pods_failure(result, prefix) if isinstance(result, CalculationFailure) else result


def _resource_value(resource: str, result: Calculation) -> MetricValue:
    """Return the value for the status: memory with binary suffixes, like the metrics API, others with decimal ones."""
    notation = BINARY_SI if resource == "memory" else DECIMAL_SI
    return MetricValue(
        average_value=Quantity.from_milli(result.usage, notation), average_utilization=result.utilization
    )
