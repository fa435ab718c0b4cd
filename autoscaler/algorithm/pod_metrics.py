"""Verdicts of the metrics that have a number for each pod: Resource, ContainerResource and Pods."""

from autoscaler.algorithm.calculate import NO_METRICS, NO_PODS, AverageYardstick, UtilizationYardstick, from_pods
from autoscaler.algorithm.metric_context import Failure, Scene, due_to_pods, taken
from autoscaler.algorithm.pods import sort_pods
from autoscaler.algorithm.requests import requests_of
from autoscaler.types.metric_result import Answer, Calculation, Incalculable, Proposal, Trouble
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

_NO_TARGET = Failure(
    "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set",
    Trouble.SPEC,
)
_NO_AVERAGE = Failure("invalid pods metric source: no average value target was set", Trouble.SPEC)


def propose_resource(source: ResourceSource, reading: Reading, scene: Scene) -> Answer:
    """Ask a resource of the whole pod."""
    result = _resource(source.name, "", source.target, reading, scene)
    if isinstance(result, Failure):
        return result.of(FAILED_RESOURCE, lambda inner: f"failed to get {source.name} resource metric value: {inner}")
    current = _resource_value(source.name, result)
    slot = MetricStatus(type=RESOURCE, resource=ResourceMetricStatus(source.name, current))
    return Proposal(result.replicas, slot, result)


def propose_container_resource(source: ContainerResourceSource, reading: Reading, scene: Scene) -> Answer:
    """Ask a resource of one container."""
    result = _resource(source.name, source.container, source.target, reading, scene)
    if isinstance(result, Failure):
        return result.of(
            FAILED_CONTAINER_RESOURCE, lambda inner: f"failed to get {source.container} container metric value: {inner}"
        )
    current = _resource_value(source.name, result)
    slot = MetricStatus(
        type=CONTAINER_RESOURCE,
        container_resource=ContainerResourceMetricStatus(source.name, current, source.container),
    )
    return Proposal(result.replicas, slot, result)


def propose_pods(source: PodsSource, reading: Reading, scene: Scene) -> Answer:
    """Ask a custom metric that every pod has."""
    result = _pods(source, reading, scene)
    if isinstance(result, Failure):
        return result.of(FAILED_PODS, lambda inner: f"failed to get pods metric value: {inner}")
    current = MetricValue(average_value=Quantity.from_milli(result.usage))
    slot = MetricStatus(type=PODS, pods=PodsMetricStatus(source.metric, current))
    return Proposal(result.replicas, slot, result)


def _pods(source: PodsSource, reading: Reading, scene: Scene) -> Calculation | Failure:
    seen = taken(reading, PodReading, f"unable to get metric {source.metric.name}")
    if isinstance(seen, Failure):
        return seen
    if source.target.average_value is None:
        return _NO_AVERAGE
    return _average(seen, source.target.average_value.milli(), "", "", scene)


def _resource(name: str, container: str, target: MetricTarget, reading: Reading, scene: Scene) -> Calculation | Failure:
    """Choose the target form: a raw value wins over utilization, whatever the target's type says."""
    if target.average_value is None and target.average_utilization is None:
        return _NO_TARGET
    measured = "utilization" if target.average_value is None else "usage"
    context = f"failed to get {name} {measured}: "
    seen = taken(reading, PodReading, f"{context}unable to get metrics for resource {name}")
    if isinstance(seen, Failure):
        return seen
    if target.average_value is not None:
        return _average(seen, target.average_value.milli(), name, context, scene)
    return _utilization(seen, target.average_utilization or 0, (name, container), context, scene)


def _average(seen: PodReading, target: int, resource: str, context: str, scene: Scene) -> Calculation | Failure:
    if not scene.pods:
        return due_to_pods(NO_PODS, context)
    groups = sort_pods(scene.pods, seen.samples, resource, scene.settings, scene.now)
    result = from_pods(seen.samples, groups, scene.target.replicas, scene.tolerance, AverageYardstick(target))
    return due_to_pods(result, context) if isinstance(result, Incalculable) else result


def _utilization(
    seen: PodReading, target: int, wanted: tuple[str, str], context: str, scene: Scene
) -> Calculation | Failure:
    resource, container = wanted
    if not scene.pods:
        return due_to_pods(NO_PODS, context)
    groups = sort_pods(scene.pods, seen.samples, resource, scene.settings, scene.now)
    requests = requests_of(scene.pods, resource, container, pod_level=scene.gates.PodLevelResources)
    yardstick = UtilizationYardstick(target, {} if isinstance(requests, Incalculable) else requests)
    result = from_pods(seen.samples, groups, scene.target.replicas, scene.tolerance, yardstick)
    if isinstance(requests, Incalculable) and result is not NO_METRICS:
        return due_to_pods(requests, context)
    return due_to_pods(result, context) if isinstance(result, Incalculable) else result


def _resource_value(resource: str, result: Calculation) -> MetricValue:
    """Show memory with binary suffixes, as the metrics API itself does, and everything else with decimal ones."""
    notation = BINARY_SI if resource == "memory" else DECIMAL_SI
    return MetricValue(
        average_value=Quantity.from_milli(result.usage, notation), average_utilization=result.utilization
    )
