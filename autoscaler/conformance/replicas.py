"""Run the vectors of upstream's replica calculator: one metric, its API response and the pods."""

from datetime import timedelta

from msgspec import convert

from autoscaler.algorithm.metric_context import MetricContext
from autoscaler.algorithm.pods import group_pods
from autoscaler.algorithm.propose import propose
from autoscaler.conformance.inputs import EPOCH, Comparison, Json, decode_pod, reading_of, seconds_of
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types import spec
from autoscaler.types.metric_result import MetricResult, Proposal, Tolerance, UnavailableMetric
from autoscaler.types.observation import PodReading, Reading, ScaleTarget
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import LabelSelector, from_label_selector, parse

_NAMESPACE = "test-namespace"
_SOURCES = ("containerResource", "resource", "pods", "object", "external")
_COMPARED_ON_ERROR = ("error", "groups", "podMetrics", "queries")
"""Go returns arbitrary numbers with an error, so only these outputs are compared."""


def run(case: Json, _document: Json) -> Comparison:
    """Calculate, and return the outputs that the case expects."""
    metric, context = _metric(case), _context(case)
    reading = reading_of(metric, case["metrics"])
    expected = {**case["expect"], "platformDependent": None}
    if expected["error"] is not None:
        expected = {key: expected[key] for key in _COMPARED_ON_ERROR if key in expected}
    outputs = _outputs(case, propose(metric, reading, context), reading, context)
    return expected, {key: outputs.get(key) for key in expected}


def _outputs(case: Json, result: MetricResult, reading: Reading, context: MetricContext) -> Json:
    outputs: dict[str, object] = {"error": _error(case, result), "queries": [_query(case)]}
    if isinstance(result, Proposal):
        outputs |= {
            "replicas": result.replicas,
            "usage": result.calculation.usage,
            "utilization": result.calculation.utilization,
            "timestamp": None if _has_value_target(case) else seconds_of(getattr(reading, "at", None)),
        }
    if isinstance(reading, PodReading):
        groups = group_pods(context.pods, reading.samples, case.get("resource", ""), context.settings, context.now)
        outputs["podMetrics"] = {name: sample.milli for name, sample in reading.samples.items()}
        names = {"unready": groups.unready, "missing": groups.missing, "ignored": groups.ignored}
        outputs["groups"] = {"ready": groups.ready, **{group: sorted(pods) for group, pods in names.items()}}
    return outputs


def _has_value_target(case: Json) -> bool:
    """Return whether the target is of type Value, for which upstream returns no timestamp."""
    return case["method"] in ("objectValue", "externalValue")


def _error(case: Json, result: MetricResult) -> str | None:
    """Return the error without the prefix that the controller adds to the calculator's."""
    if not isinstance(result, UnavailableMetric):
        return None
    measured = "utilization" if "targetUtilization" in case else "usage"
    return result.message.removeprefix(f"failed to get {case.get('resource', '')} {measured}: ")


def _metric(case: Json) -> spec.Metric:
    """Decode the metric. The source has the fields of all types, because decoding ignores those of other types."""
    key = next(source for source in _SOURCES if case["method"].startswith(source))
    target: Json = {"type": spec.AVERAGE_VALUE, "averageValue": case.get("targetMilli", 0)}
    if "targetUtilization" in case:
        target = {"type": spec.UTILIZATION, "averageUtilization": case["targetUtilization"]}
    elif _has_value_target(case):
        target = {"type": spec.VALUE, "value": case.get("targetMilli", 0)}
    source = {
        "name": case.get("resource", ""),
        "container": case.get("container", ""),
        "metric": {"name": case.get("metricName", ""), "selector": case.get("metricSelector")},
        "describedObject": case.get("object", {}),
        "target": target,
    }
    metric = {"type": key[0].upper() + key[1:], key: source}
    return convert(metric, spec.Metric, dec_hook=lambda _, milli: Quantity.from_milli(milli))


def _context(case: Json) -> MetricContext:
    settings = Settings(
        cpu_initialization_period=timedelta(seconds=case["cpuInitializationPeriod"]),
        initial_readiness_delay=timedelta(seconds=case["delayOfInitialReadinessStatus"]),
    )
    selector = parse(case["selector"])
    target = ScaleTarget(case["currentReplicas"], case["statusReplicas"], case["selector"])
    tolerance = Tolerance(case["tolerances"]["scaleDown"], case["tolerances"]["scaleUp"])
    pods = tuple(pod for pod in map(decode_pod, case["pods"]) if selector.matches(pod.labels))
    return MetricContext(_NAMESPACE, target, pods, tolerance, settings, FeatureGates(), EPOCH)


def _query(case: Json) -> Json:
    """Return the API request that upstream sends; its selectors are compared."""
    method = case["method"]
    pods = str(parse(case["selector"]))
    if "esource" in method:
        return {"api": "resource", "labelSelector": pods}
    series = str(from_label_selector(convert(case.get("metricSelector"), LabelSelector | None)))
    if method.startswith("external"):
        return {"api": "external", "metric": case["metricName"], "labelSelector": series}
    query = {"api": "custom", "metric": case["metricName"], "metricLabelSelector": series}
    if method.startswith("pods"):
        return {**query, "groupKind": "Pod", "name": "*", "labelSelector": pods}
    kind, version = case["object"]["kind"], case["object"].get("apiVersion", "")
    # Upstream treats an unparsable version as one of the core group.
    group = version.rpartition("/")[0] if version.count("/") < 2 else ""
    if kind == "Namespace" and not group:
        return {**query, "groupKind": kind, "name": _NAMESPACE, "rootScoped": True}
    return {**query, "groupKind": f"{kind}.{group}" if group else kind, "name": case["object"]["name"]}
