"""What is said of each field: the text of `kubectl explain`."""

from collections.abc import Mapping
from typing import Final

from autoscaler.types import spec, status
from autoscaler.values.selector import LabelSelector, LabelSelectorRequirement

ABOUT: Final = (
    "PodAutoscaler keeps a workload as large as its metrics ask for. Its spec is that of a HorizontalPodAutoscaler"
    " (autoscaling/v2), field for field, plus: a fallback for each external metric that stays unreadable, and a mode in"
    " which it only tells what it would do."
)
ABOUT_SPEC: Final = "What you ask for: which workload to scale, between which bounds, by which metrics, how fast."
ABOUT_STATUS: Final = "What the autoscaler last saw and decided. Written by the controller only."

_QUANTITY: Final = 'A quantity such as "500m", "2" or "1Gi".'
_TARGET: Final = "What the metric should be."
_CURRENT: Final = "What the metric was at the last look."
_WHICH: Final = "Which metric: its name, and a selector that narrows it to some of its series."

WORDS: Final[Mapping[type, Mapping[str, str]]] = {
    LabelSelector: {
        "match_labels": "Labels that a series must have, with exactly these values.",
        "match_expressions": "Further requirements; all of them must hold.",
    },
    LabelSelectorRequirement: {
        "key": "The label's key.",
        "operator": "In, NotIn, Exists or DoesNotExist.",
        "values": "The values for In and NotIn; empty for the other two.",
    },
    spec.ObjectReference: {
        "kind": "Its kind, such as Deployment.",
        "name": "Its name, in the autoscaler's namespace.",
        "api_version": "Its API group and version, such as apps/v1. Only the group counts; the version is the server's"
        " preferred one.",
    },
    spec.MetricIdentifier: {
        "name": "The metric's name.",
        "selector": "Narrows the metric to series with these labels. Absent: all of its series.",
    },
    spec.MetricTarget: {
        "type": "How the target is meant: Utilization, Value or AverageValue.",
        "value": f"The metric in all. {_QUANTITY}",
        "average_value": f"The metric for each pod: the total divided by the number of pods. {_QUANTITY}",
        "average_utilization": "The average over all pods in percent of what they request. For resource metrics only.",
    },
    spec.ResourceSource: {
        "name": "The resource: cpu, memory or another that the metrics API measures.",
        "target": f"{_TARGET} Set averageUtilization or averageValue.",
    },
    spec.ContainerResourceSource: {
        "name": "The resource: cpu, memory or another that the metrics API measures.",
        "target": f"{_TARGET} Set averageUtilization or averageValue.",
        "container": "The name of the container in each pod.",
    },
    spec.PodsSource: {"metric": _WHICH, "target": f"{_TARGET} Set averageValue."},
    spec.ObjectSource: {
        "described_object": "The object that the metric belongs to.",
        "target": f"{_TARGET} Set value or averageValue; type says which of them counts.",
        "metric": _WHICH,
    },
    spec.Fallback: {
        "replicas": "How many replicas to propose while the metric cannot be read. Bounds, policies and other metrics"
        " apply to it as to any proposal.",
        "failure_duration_seconds": "For how long reads must have been failing without a break before the fallback"
        " speaks. Until then the metric has no say, and blocks scaling down. Default 180, which is also the least.",
        "strategy": "Static: propose replicas. UseMax or UseMin: propose the larger or the smaller of replicas and the"
        " size that the workload had when the fallback began to speak. Default Static.",
    },
    spec.ExternalSource: {
        "metric": _WHICH,
        "target": f"{_TARGET} Set either value or averageValue.",
        "fallback": "What to propose once the metric has been unreadable for a while. Absent: an unreadable metric"
        " keeps the workload from being scaled down for as long as it is unreadable.",
    },
    spec.Metric: {
        "type": "Which of the following is set: Object, Pods, Resource, ContainerResource or External.",
        "object": "A custom metric of one Kubernetes object, such as the requests that reach an Ingress.",
        "pods": "A custom metric that each of the workload's pods has; its average is what counts.",
        "resource": "A resource that the pods use, such as cpu, all of their containers together.",
        "container_resource": "A resource that one container of each pod uses.",
        "external": "A metric that belongs to no Kubernetes object, such as the length of a queue.",
    },
    spec.Policy: {
        "type": "Pods: value is a number of pods. Percent: value is in percent of the current size.",
        "value": "By how much the size may change within the period.",
        "period_seconds": "How long the period is, in seconds, from 1 to 1800.",
    },
    spec.ScalingRules: {
        "stabilization_window_seconds": "How far to look back, in seconds: upwards, the lowest recommendation of the"
        " window counts; downwards, the highest. From 0 to 3600. Default: 0 upwards; downwards what the operator of the"
        " controller has set, 300 unless told otherwise.",
        "select_policy": "Which policy counts where there are several: Max, the one that allows most; Min, the one that"
        " allows least; Disabled, do not scale in this direction at all. Default Max.",
        "policies": "How fast the size may change. Default upwards: 4 pods or 100 percent in 15 seconds; downwards: 100"
        " percent in 15 seconds.",
        "tolerance": "How far the metric may be from its target, as a fraction of it, without anything being done: 0.1"
        " is ten percent. Default: what the operator of the controller has set, 0.1 unless told otherwise.",
    },
    spec.Behavior: {
        "scale_up": "How the workload grows.",
        "scale_down": "How the workload shrinks.",
    },
    spec.Spec: {
        "scale_target_ref": "The workload to scale: a Deployment, a StatefulSet, or anything with a scale subresource.",
        "min_replicas": "It is never scaled below this. 0 needs at least one Object or External metric. Default 1.",
        "max_replicas": "It is never scaled above this.",
        "metrics": "What decides its size; the metric that asks for most replicas wins. Default: cpu at 80 percent of"
        " what the pods request.",
        "behavior": "How fast it is scaled, upwards and downwards. Absent: as fast as doubling, or by four pods, and"
        " down only after five minutes without a higher recommendation.",
        "mode": "Active: decide and scale. DryRun: decide and tell, never scale. Paused: likewise, until pausedUntil or"
        " until you change this. Default Active.",
        "paused_until": "With mode Paused: when to become active again by itself. Absent: not by itself.",
    },
    status.MetricValue: {
        "value": "The metric in all.",
        "average_value": "The metric for each pod.",
        "average_utilization": "The average over all pods in percent of what they request.",
    },
    status.ObjectMetricStatus: {
        "metric": _WHICH,
        "current": _CURRENT,
        "described_object": "The object that the metric belongs to.",
    },
    status.PodsMetricStatus: {"metric": _WHICH, "current": _CURRENT},
    status.ResourceMetricStatus: {"name": "The resource.", "current": _CURRENT},
    status.ContainerResourceMetricStatus: {
        "name": "The resource.",
        "current": _CURRENT,
        "container": "The container.",
    },
    status.ExternalMetricStatus: {
        "metric": _WHICH,
        "current": _CURRENT,
        "fallback_status": "Normal or Fallback. Normal together with firstFailureTime: reads are failing, and the"
        " fallback will speak once they have failed for long enough.",
        "first_failure_time": "Since when reads have been failing without a break; absent while they succeed.",
        "fallback_replicas": "What the fallback proposes at the moment.",
        "captured_replicas": "How large the workload was when the fallback began to speak.",
    },
    status.MetricStatus: {
        "type": "Which of the following is set; empty for a metric that could not be read.",
        "object": "The state of an Object metric.",
        "pods": "The state of a Pods metric.",
        "resource": "The state of a Resource metric.",
        "container_resource": "The state of a ContainerResource metric.",
        "external": "The state of an External metric, and of its fallback.",
    },
    status.Condition: {
        "type": "AbleToScale, ScalingActive, ScalingLimited, ScaledToZero or ExternalMetricFallbackActive.",
        "status": "True, False or Unknown.",
        "last_transition_time": "When status last changed.",
        "reason": "Why, in one word.",
        "message": "Why, in a sentence.",
    },
    status.Status: {
        "desired_replicas": "How many replicas there should be.",
        "current_metrics": "The state of each metric, in the order of spec.metrics.",
        "observed_generation": "The generation of the spec that this status is about.",
        "last_scale_time": "When the workload was last scaled.",
        "current_replicas": "How many replicas the workload had at the last look.",
        "conditions": "Whether scaling works, what it is limited by, and why.",
        "memory": "What windows, policies and clocks need to survive a restart of the controller, in its own notation.",
    },
}
