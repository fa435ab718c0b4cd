"""Run the vectors of upstream's replica calculator: one metric, its API response and the pods."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from msgspec import convert

from autoscaler.algorithm.metric_context import MetricContext
from autoscaler.algorithm.pods import group_pods
from autoscaler.algorithm.propose import propose
from autoscaler.conformance import inputs
from autoscaler.conformance.inputs import EPOCH, Json
from autoscaler.conformance.result import Case, Difference, Document, compare
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types import spec
from autoscaler.types.metric_result import MetricResult, Proposal, Tolerance, UnavailableMetric
from autoscaler.types.observation import Pod, PodReading, Reading, ScaleTarget
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import LabelSelector, from_label_selector, parse

_WITHOUT_TIMESTAMP = ("objectValue", "externalValue")
"""Methods for which upstream returns no timestamp."""


def sections(document: Document) -> tuple[str, ...]:
    """Return the section of a file of replica calculations, or nothing for other files."""
    cases = document.get("cases")
    return ("cases",) if isinstance(cases, list) and all("method" in case for case in cases) else ()


def cases(document: Document) -> Iterator[Case]:
    """Yield every case."""
    namespace = document.get("namespace", "test-namespace")
    for case in document["cases"]:
        yield Case(case["id"], partial(_differences, case, namespace))


def _differences(case: Json, namespace: str) -> Iterator[Difference]:
    metric = _metric(case)
    reading = inputs.reading_of(metric, case["metrics"])
    context = _context(case, namespace)
    result = propose(metric, reading, context)
    expected = {key: value for key, value in case["expect"].items() if key != "platformDependent"}
    if expected["error"] is not None:
        # Go returns arbitrary numbers with an error, so only the error is compared.
        expected = {key: expected[key] for key in ("error", "groups", "podMetrics", "queries") if key in expected}
    outputs = _outputs(case, result, reading, context)
    yield from compare("", expected, {key: outputs.get(key) for key in expected})


def _outputs(case: Json, result: MetricResult, reading: Reading, context: MetricContext) -> dict[str, object]:
    outputs: dict[str, object] = {"error": _error(case, result), "queries": [_query(case)]}
    if isinstance(result, Proposal):
        timestamp = inputs.seconds_of(getattr(reading, "at", None))
        outputs |= {
            "replicas": result.replicas,
            "usage": result.calculation.usage,
            "utilization": result.calculation.utilization,
            "timestamp": None if case["method"] in _WITHOUT_TIMESTAMP else timestamp,
        }
    if isinstance(reading, PodReading):
        groups = group_pods(context.pods, reading.samples, case.get("resource", ""), context.settings, context.now)
        outputs["podMetrics"] = {name: sample.milli for name, sample in reading.samples.items()}
        outputs["groups"] = {
            "ready": groups.ready,
            "unready": sorted(groups.unready),
            "missing": sorted(groups.missing),
            "ignored": sorted(groups.ignored),
        }
    return outputs


def _error(case: Json, result: MetricResult) -> str | None:
    """Return the error without the prefix that the controller adds to the calculator's."""
    if not isinstance(result, UnavailableMetric):
        return None
    measured = "utilization" if "targetUtilization" in case else "usage"
    return result.message.removeprefix(f"failed to get {case.get('resource', '')} {measured}: ")


def _metric(case: Json) -> spec.Metric:
    method, resource = case["method"], case.get("resource", "")
    target = _target(case)
    if method.startswith("resource"):
        return spec.Metric(type=spec.RESOURCE, resource=spec.ResourceSource(resource, target))
    if method.startswith("containerResource"):
        source = spec.ContainerResourceSource(resource, target, case.get("container", ""))
        return spec.Metric(type=spec.CONTAINER_RESOURCE, container_resource=source)
    identifier = spec.MetricIdentifier(case["metricName"], _metric_selector(case))
    if method.startswith("pods"):
        return spec.Metric(type=spec.PODS, pods=spec.PodsSource(identifier, target))
    if method.startswith("object"):
        described = convert(case["object"], spec.ObjectReference)
        return spec.Metric(type=spec.OBJECT, object=spec.ObjectSource(described, target, identifier))
    return spec.Metric(type=spec.EXTERNAL, external=spec.ExternalSource(identifier, target))


def _target(case: Json) -> spec.MetricTarget:
    if "targetUtilization" in case:
        return spec.MetricTarget(type=spec.UTILIZATION, average_utilization=case["targetUtilization"])
    value = Quantity.from_milli(case.get("targetMilli", 0))
    if case["method"] in _WITHOUT_TIMESTAMP:
        return spec.MetricTarget(type=spec.VALUE, value=value)
    return spec.MetricTarget(type=spec.AVERAGE_VALUE, average_value=value)


def _metric_selector(case: Json) -> LabelSelector | None:
    selector = case.get("metricSelector")
    return None if selector is None else convert(selector, LabelSelector)


def _context(case: Json, namespace: str) -> MetricContext:
    tolerances = case["tolerances"]
    settings = Settings(
        cpu_initialization_period=timedelta(seconds=case["cpuInitializationPeriod"]),
        initial_readiness_delay=timedelta(seconds=case["delayOfInitialReadinessStatus"]),
    )
    target = ScaleTarget(case["currentReplicas"], case["statusReplicas"], case["selector"])
    tolerance = Tolerance(tolerances["scaleDown"], tolerances["scaleUp"])
    return MetricContext(namespace, target, _selected(case), tolerance, settings, FeatureGates(), EPOCH)


def _selected(case: Json) -> tuple[Pod, ...]:
    selector = parse(case["selector"])
    pods = (inputs.pod(one) for one in case["pods"])
    return tuple(pod for pod in pods if selector.matches(pod.labels))


def _query(case: Json) -> dict[str, object]:
    """Return the API request that upstream sends; its selectors are compared."""
    method = case["method"]
    pods = str(parse(case["selector"]))
    if "esource" in method:
        return {"api": "resource", "labelSelector": pods}
    series = str(from_label_selector(_metric_selector(case)))
    if method.startswith("external"):
        return {"api": "external", "metric": case["metricName"], "labelSelector": series}
    query: dict[str, object] = {"api": "custom", "metric": case["metricName"], "metricLabelSelector": series}
    if method.startswith("pods"):
        return {**query, "groupKind": "Pod", "name": "*", "labelSelector": pods}
    described = case["object"]
    version = described.get("apiVersion", "")
    # Upstream treats an unparsable version as one of the core group.
    group = version.rpartition("/")[0] if version.count("/") < 2 else ""
    query["groupKind"] = f"{described['kind']}.{group}" if group else described["kind"]
    if query["groupKind"] == "Namespace":
        return {**query, "name": "test-namespace", "rootScoped": True}
    return {**query, "name": described["name"]}
