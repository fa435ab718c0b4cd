"""Descriptions of all fields, as shown by `kubectl explain`."""

from collections.abc import Mapping
from typing import Final

from autoscaler.types import spec, status
from autoscaler.values.selector import LabelSelector, LabelSelectorRequirement

KIND_DESCRIPTION: Final = (
    "PodAutoscaler automatically scales a workload based on metrics. Its spec is that of a HorizontalPodAutoscaler"
    " (autoscaling/v2), plus a fallback for external metrics that cannot be read, and a mode in which decisions are"
    " reported but not applied."
)
SPEC_DESCRIPTION: Final = (
    "The desired behavior: which workload to scale, within which bounds, by which metrics, how fast."
)
STATUS_DESCRIPTION: Final = "The last observation and decision. Written only by the controller."

_QUANTITY: Final = 'A quantity such as "500m", "2" or "1Gi".'
_TARGET: Final = "The target value of the metric."
_CURRENT: Final = "The value of the metric at the last reconcile."
_IDENTIFIER: Final = "Identifies the metric by name and selector."

DESCRIPTIONS: Final[Mapping[type, Mapping[str, str]]] = {
    LabelSelector: {
        "match_labels": "Labels with the exact values that a series must have.",
        "match_expressions": "Label requirements that a series must satisfy; all of them must match.",
    },
    LabelSelectorRequirement: {
        "key": "The label's key.",
        "operator": "In, NotIn, Exists or DoesNotExist.",
        "values": "The values for In and NotIn; must be empty for Exists and DoesNotExist.",
    },
    spec.ObjectReference: {
        "kind": "The kind of the object, such as Deployment.",
        "name": "The name of the object, in the namespace of the autoscaler.",
        "api_version": "The API group and version of the object, such as apps/v1. Only the group is used, with the"
        " preferred version of the API server.",
    },
    spec.MetricIdentifier: {
        "name": "The name of the metric.",
        "selector": "Selects series of the metric by their labels. If absent, all series are selected.",
    },
    spec.MetricTarget: {
        "type": "The type of the target: Utilization, Value or AverageValue.",
        "value": f"The target for the total value of the metric. {_QUANTITY}",
        "average_value": f"The target for the average value per pod. {_QUANTITY}",
        "average_utilization": "The target for the average usage of all pods, in percent of their requests. Only for"
        " resource metrics.",
    },
    spec.ResourceSource: {
        "name": "The name of the resource, such as cpu or memory.",
        "target": f"{_TARGET} Set averageUtilization or averageValue.",
    },
    spec.ContainerResourceSource: {
        "name": "The name of the resource, such as cpu or memory.",
        "target": f"{_TARGET} Set averageUtilization or averageValue.",
        "container": "The name of the container in the pods of the workload.",
    },
    spec.PodsSource: {"metric": _IDENTIFIER, "target": f"{_TARGET} Set averageValue."},
    spec.ObjectSource: {
        "described_object": "The object that the metric describes.",
        "target": f"{_TARGET} Set value or averageValue, as given by type.",
        "metric": _IDENTIFIER,
    },
    spec.Fallback: {
        "replicas": "The replicas to propose while the metric cannot be read. Bounds, policies and the other metrics"
        " apply as to any proposal.",
        "failure_duration_seconds": "How long reads must fail without interruption before the fallback becomes active."
        " Until then the metric is unavailable and blocks scaling down. Default and minimum: 180; maximum:"
        " 31536000, one year.",
        "strategy": "Static: propose replicas. UseMax or UseMin: propose the larger or the smaller of replicas and the"
        " replicas of the workload when the fallback became active. Default: Static.",
    },
    spec.ExternalSource: {
        "metric": _IDENTIFIER,
        "target": f"{_TARGET} Set either value or averageValue.",
        "fallback": "What to propose after the metric could not be read for a while. If absent, the metric blocks"
        " scaling down for as long as it cannot be read.",
    },
    spec.Metric: {
        "type": "The type of the metric source: Object, Pods, Resource, ContainerResource or External.",
        "object": "A custom metric that describes one Kubernetes object, such as the requests of an Ingress.",
        "pods": "A custom metric that describes each pod of the workload; the average is used.",
        "resource": "The usage of a resource, such as cpu, by all containers of the pods.",
        "container_resource": "The usage of a resource by one container of each pod.",
        "external": "A metric that is not related to a Kubernetes object, such as the length of a queue.",
    },
    spec.Policy: {
        "type": "Pods: value is a number of pods. Percent: value is a percentage of the current replicas.",
        "value": "The maximum change of the replicas within the period.",
        "period_seconds": "The length of the period in seconds, from 1 to 1800.",
    },
    spec.ScalingRules: {
        "stabilization_window_seconds": "The window for past recommendations in seconds, from 0 to 3600: when scaling"
        " up, the lowest recommendation of the window is used; when scaling down, the highest. Default: 0 for scaling"
        " up; for scaling down the setting of the controller, by default 300.",
        "select_policy": "Which policy is used if there are several: Max, the one with the largest change; Min, the"
        " one with the smallest change; Disabled, no scaling in this direction. Default: Max.",
        "policies": "Limits on the rate of scaling. Default for scaling up: 4 pods or 100 percent per 15 seconds; for"
        " scaling down: 100 percent per 15 seconds.",
        "tolerance": "The tolerance on the ratio of metric to target within which no scaling occurs; 0.1 is ten"
        " percent. Default: the setting of the controller, by default 0.1.",
    },
    spec.Behavior: {
        "scale_up": "The policies for scaling up.",
        "scale_down": "The policies for scaling down.",
    },
    spec.Spec: {
        "scale_target_ref": "The workload to scale: a Deployment, a StatefulSet, or any object with a scale"
        " subresource.",
        "min_replicas": "The lower bound of the replicas. 0 requires at least one Object or External metric. Default:"
        " 1.",
        "max_replicas": "The upper bound of the replicas.",
        "metrics": "The metrics from which the desired replicas are computed; the highest proposal is used. Default:"
        " average cpu utilization of 80 percent.",
        "behavior": "The rate of scaling up and down. If absent, scaling up is limited to doubling or four pods, and"
        " scaling down is delayed by five minutes of stabilization.",
        "mode": "Active: compute and apply decisions. DryRun: compute and report decisions, never apply them. Paused:"
        " like DryRun, until pausedUntil. Default: Active.",
        "paused_until": "With mode Paused: when the autoscaler becomes active again. If absent, it stays paused.",
    },
    status.MetricValue: {
        "value": "The total value of the metric.",
        "average_value": "The average value per pod.",
        "average_utilization": "The average usage of all pods, in percent of their requests.",
    },
    status.ObjectMetricStatus: {
        "metric": _IDENTIFIER,
        "current": _CURRENT,
        "described_object": "The object that the metric describes.",
    },
    status.PodsMetricStatus: {"metric": _IDENTIFIER, "current": _CURRENT},
    status.ResourceMetricStatus: {"name": "The name of the resource.", "current": _CURRENT},
    status.ContainerResourceMetricStatus: {
        "name": "The name of the resource.",
        "current": _CURRENT,
        "container": "The name of the container.",
    },
    status.ExternalMetricStatus: {
        "metric": _IDENTIFIER,
        "current": _CURRENT,
        "fallback_status": "Normal or Fallback. Normal with firstFailureTime: reads fail, and the fallback becomes"
        " active after failureDurationSeconds.",
        "first_failure_time": "Since when reads fail without interruption; absent while they succeed.",
        "fallback_replicas": "The replicas that the fallback proposes.",
        "captured_replicas": "The replicas of the workload when the fallback became active.",
        "failure_message": "Why the last read failed; absent if it succeeded.",
    },
    status.MetricStatus: {
        "type": "The type of the metric source; empty for a metric that could not be read.",
        "object": "The state of an Object metric.",
        "pods": "The state of a Pods metric.",
        "resource": "The state of a Resource metric.",
        "container_resource": "The state of a ContainerResource metric.",
        "external": "The state of an External metric and its fallback.",
    },
    status.Condition: {
        "type": "AbleToScale, ScalingActive, ScalingLimited, ScaledToZero or ExternalMetricFallbackActive.",
        "status": "True, False or Unknown.",
        "last_transition_time": "When the status of the condition last changed.",
        "reason": "A machine-readable reason for the last transition.",
        "message": "A human-readable explanation.",
    },
    status.Status: {
        "desired_replicas": "The desired replicas of the workload.",
        "current_metrics": "The state of each metric, in the order of spec.metrics.",
        "observed_generation": "The generation of the spec that the controller observed.",
        "last_scale_time": "When the workload was last scaled.",
        "current_replicas": "The replicas of the workload at the last reconcile.",
        "conditions": "Whether the autoscaler can scale the workload, and which limits apply.",
        "reference": "Kind and name of the target, as `kubectl get` shows them.",
        "state": "The states of the autoscaler, most severe first, each with its reason: normal, fallback, metric"
        " failing, paused, dry run, conflict, limited and so on.",
        "targets": "The current and the target value of the metrics, as `kubectl get` shows them.",
        "controller_state": "The history of recommendations and rescales, in the controller's own format, so that it"
        " survives a restart.",
    },
}
