"""Runs the vectors of upstream's replica calculator: one metric, its answer and the pods, to a replica count."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from msgspec import convert

from autoscaler.algorithm.metric_context import Scene
from autoscaler.algorithm.pods import sort_pods
from autoscaler.algorithm.propose import propose
from autoscaler.conformance import inputs
from autoscaler.conformance.inputs import EPOCH, Json
from autoscaler.conformance.result import Case, Difference, Document, compare
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types import spec
from autoscaler.types.metric_result import Proposal, Tolerance, Unavailable, Verdict
from autoscaler.types.observation import Pod, PodReading, Reading, ScaleTarget
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import LabelSelector, from_label_selector, parse

_TIMELESS = ("objectValue", "externalValue")
"""Upstream drops the timestamp of these."""


def sections(document: Document) -> tuple[str, ...]:
    """Recognise a file of replica calculations."""
    cases = document.get("cases")
    return ("cases",) if isinstance(cases, list) and all("method" in case for case in cases) else ()


def cases(document: Document) -> Iterator[Case]:
    """Give every calculation."""
    namespace = document.get("namespace", "test-namespace")
    for case in document["cases"]:
        yield Case(case["id"], partial(_differences, case, namespace))


def _differences(case: Json, namespace: str) -> Iterator[Difference]:
    metric = _metric(case)
    reading = inputs.reading_of(metric, case["metrics"])
    scene = _scene(case, namespace)
    verdict = propose(metric, reading, scene)
    expected = {key: value for key, value in case["expect"].items() if key != "platformDependent"}
    if expected["error"] is not None:
        # Numbers beside an error are whatever Go returned: only the error means something.
        expected = {key: expected[key] for key in ("error", "groups", "podMetrics", "queries") if key in expected}
    everything = _outputs(case, verdict, reading, scene)
    yield from compare("", expected, {key: everything.get(key) for key in expected})


def _outputs(case: Json, verdict: Verdict, reading: Reading, scene: Scene) -> dict[str, object]:
    outputs: dict[str, object] = {"error": _error(case, verdict), "queries": [_query(case)]}
    if isinstance(verdict, Proposal):
        outputs |= {
            "replicas": verdict.replicas,
            "usage": verdict.calculation.usage,
            "utilization": verdict.calculation.utilization,
            "timestamp": None if case["method"] in _TIMELESS else inputs.seconds_of(getattr(reading, "at", None)),
        }
    if isinstance(reading, PodReading):
        groups = sort_pods(scene.pods, reading.samples, case.get("resource", ""), scene.settings, scene.now)
        outputs["podMetrics"] = {name: sample.milli for name, sample in reading.samples.items()}
        outputs["groups"] = {
            "ready": groups.ready,
            "unready": sorted(groups.unready),
            "missing": sorted(groups.missing),
            "ignored": sorted(groups.ignored),
        }
    return outputs


def _error(case: Json, verdict: Verdict) -> str | None:
    """Give the calculator's own error, without what the controller puts before it."""
    if not isinstance(verdict, Unavailable):
        return None
    measured = "utilization" if "targetUtilization" in case else "usage"
    return verdict.message.removeprefix(f"failed to get {case.get('resource', '')} {measured}: ")


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
    goal = Quantity.from_milli(case.get("targetMilli", 0))
    if case["method"] in _TIMELESS:
        return spec.MetricTarget(type=spec.VALUE, value=goal)
    return spec.MetricTarget(type=spec.AVERAGE_VALUE, average_value=goal)


def _metric_selector(case: Json) -> LabelSelector | None:
    selector = case.get("metricSelector")
    return None if selector is None else convert(selector, LabelSelector)


def _scene(case: Json, namespace: str) -> Scene:
    tolerances = case["tolerances"]
    settings = Settings(
        cpu_initialization_period=timedelta(seconds=case["cpuInitializationPeriod"]),
        initial_readiness_delay=timedelta(seconds=case["delayOfInitialReadinessStatus"]),
    )
    target = ScaleTarget(case["currentReplicas"], case["statusReplicas"], case["selector"])
    tolerance = Tolerance(tolerances["scaleDown"], tolerances["scaleUp"])
    return Scene(namespace, target, _selected(case), tolerance, settings, FeatureGates(), EPOCH)


def _selected(case: Json) -> tuple[Pod, ...]:
    selector = parse(case["selector"])
    pods = (inputs.pod(one) for one in case["pods"])
    return tuple(pod for pod in pods if selector.matches(pod.labels))


def _query(case: Json) -> dict[str, object]:
    """Say what upstream would have asked of which API: selectors are part of what must match."""
    method = case["method"]
    pods = str(parse(case["selector"]))
    if "esource" in method:
        return {"api": "resource", "labelSelector": pods}
    series = str(from_label_selector(_metric_selector(case)))
    if method.startswith("external"):
        return {"api": "external", "metric": case["metricName"], "labelSelector": series}
    asked: dict[str, object] = {"api": "custom", "metric": case["metricName"], "metricLabelSelector": series}
    if method.startswith("pods"):
        return {**asked, "groupKind": "Pod", "name": "*", "labelSelector": pods}
    described = case["object"]
    version = described.get("apiVersion", "")
    # Upstream takes a version that it cannot parse for one of the core group.
    group = version.rpartition("/")[0] if version.count("/") < 2 else ""
    asked["groupKind"] = f"{described['kind']}.{group}" if group else described["kind"]
    if asked["groupKind"] == "Namespace":
        return {**asked, "name": "test-namespace", "rootScoped": True}
    return {**asked, "name": described["name"]}
