"""Turn one metric and its reading into a metric result, and name metrics in messages."""

from autoscaler.algorithm.metric_context import MetricContext
from autoscaler.algorithm.pod_metrics import propose_container_resource, propose_pods, propose_resource
from autoscaler.algorithm.workload_metrics import propose_external, propose_object
from autoscaler.types.metric_result import MetricResult, UnavailableCause, UnavailableMetric
from autoscaler.types.observation import Reading
from autoscaler.types.spec import CONTAINER_RESOURCE, EXTERNAL, OBJECT, PODS, RESOURCE, VALUE, Metric, MetricTarget
from autoscaler.values.selector import go_syntax

UNKNOWN_SOURCE = "InvalidMetricSourceType"


def propose(metric: Metric, reading: Reading, context: MetricContext) -> MetricResult:
    """Return the metric's proposal, or why it is unavailable."""
    kind = metric.type
    if kind == EXTERNAL and metric.external is not None:
        return propose_external(metric.external, reading, context)
    if kind == RESOURCE and metric.resource is not None:
        return propose_resource(metric.resource, reading, context)
    if kind == CONTAINER_RESOURCE and metric.container_resource is not None:
        return propose_container_resource(metric.container_resource, reading, context)
    if kind == PODS and metric.pods is not None:
        return propose_pods(metric.pods, reading, context)
    if kind == OBJECT and metric.object is not None:
        return propose_object(metric.object, reading, context)
    message = f'unknown metric source type "{kind}"'
    return UnavailableMetric(UNKNOWN_SOURCE, message, message, UnavailableCause.SPEC)


def describe(metric: Metric) -> str:
    """Name a metric as upstream does, which calls an Object metric with an AverageValue target an external metric."""
    kind = metric.type
    if kind == EXTERNAL and metric.external is not None:
        return f"external metric {metric.external.metric.name}({go_syntax(metric.external.metric.selector)})"
    if kind == RESOURCE and metric.resource is not None:
        return _describe_resource(metric.resource.name, metric.resource.target, "")
    if kind == CONTAINER_RESOURCE and metric.container_resource is not None:
        return _describe_resource(metric.container_resource.name, metric.container_resource.target, "container ")
    if kind == PODS and metric.pods is not None:
        return f"pods metric {metric.pods.metric.name}"
    if kind == OBJECT and metric.object is not None:
        if metric.object.target.type == VALUE:
            return f"{metric.object.described_object.kind} metric {metric.object.metric.name}"
        return f"external metric {metric.object.metric.name}({go_syntax(metric.object.metric.selector)})"
    return f"metric of unknown type {kind}"


def _describe_resource(name: str, target: MetricTarget, container: str) -> str:
    if target.average_value is not None:
        return f"{name} resource"
    return f"{name} {container}resource utilization (percentage of request)"


def name_of(metric: Metric) -> str:
    """Return the short name of a metric: the metric's name and selector, or the resource's name."""
    named = metric.external or metric.pods or metric.object
    if named is not None:
        return str(named.metric)
    resource = metric.resource or metric.container_resource
    return metric.type if resource is None else resource.name
