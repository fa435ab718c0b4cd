"""The generated CustomResourceDefinition of PodAutoscaler."""

from typing import Any

import yaml

from adapter.decoding import structural_schema
from autoscaler.types.spec import MetricIdentifier
from autoscaler.types.status import UNREAD, Condition, ExternalMetricStatus, MetricStatus, MetricValue, Status
from autoscaler.wire import encode
from tools.crd import parameters
from tools.crd.__main__ import PATH
from tools.crd.definition import definition, render


def version() -> Any:
    return definition()["spec"]["versions"][0]


def root() -> Any:
    return version()["schema"]["openAPIV3Schema"]


def test_manifest_is_up_to_date():
    assert PATH.read_text() == render(), "run `make manifests`"


def test_parameters_of_external_metric_are_up_to_date():
    assert parameters.FILE.read_text() == parameters.render(parameters.FILE.read_text()), "run `make manifests`"


def unbounded(inner: dict[str, Any], path: str) -> list[str]:
    """Return the paths of schemas that accept values of any size or depth."""
    match inner.get("type"):
        case "string":
            is_bounded = "maxLength" in inner or "enum" in inner
        case "array":
            is_bounded = "maxItems" in inner
        case "object":
            is_bounded = "properties" in inner or "maxProperties" in inner
        case "integer" | "boolean":
            is_bounded = True
        case _:
            is_bounded = {"maxLength", "maxItems", "items", "maxProperties"} <= inner.keys()
    found = [] if is_bounded else [path]
    for key, value in {**inner.get("properties", {}), "*": inner.get("additionalProperties")}.items():
        found += unbounded(value, f"{path}.{key}") if value else []
    return found + (unbounded(inner["items"], f"{path}[]") if "items" in inner else [])


def test_every_parameter_of_external_metric_is_bounded():
    assert unbounded(parameters.parameters_schema(), "parameters") == []
    assert unbounded({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "x") == ["x"]


def test_manifest_parses_to_the_definition():
    assert yaml.safe_load(PATH.read_text()) == definition()


def test_every_field_is_described():
    def undescribed(inner: dict[str, Any], path: str) -> list[str]:
        missing = []
        for key, field in inner.get("properties", {}).items():
            field_path = f"{path}.{key}"
            if not field.get("description"):
                missing.append(field_path)
            missing += undescribed(field.get("items", field), field_path)
        return missing

    spec, status = root()["properties"]["spec"], root()["properties"]["status"]
    assert undescribed(spec, "spec") + undescribed(status, "status") == []


def test_every_status_is_valid():
    failing = ExternalMetricStatus(MetricIdentifier(""), MetricValue(), fallback_status="")
    status = Status(
        current_metrics=(UNREAD, MetricStatus(type="External", external=failing)),
        conditions=(Condition("AbleToScale", "False"),),
        controller_state="v1",
    )
    sent = {key: value for key, value in encode(status).items() if value is not None}
    content = {"metadata": {"name": "it"}, "status": sent}
    stored = {"metadata": {"name": "it"}, "status": dict(sent)}
    structural_schema.prune_and_default(root(), stored)
    assert stored["status"]["currentMetrics"] == content["status"]["currentMetrics"]
    assert [
        problem for problem in structural_schema.problems(root(), stored) if problem.path.startswith("status")
    ] == []


def test_columns_are_those_of_an_hpa_plus_the_state():
    shown = [column["name"] for column in version()["additionalPrinterColumns"] if not column.get("priority")]
    assert shown == ["Reference", "Targets", "MinPods", "MaxPods", "Replicas", "State", "Age"]
