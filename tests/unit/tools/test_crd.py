"""The definition of PodAutoscaler: as applied, as made, and as the controller reads it."""

from typing import Any

import yaml

from adapter.fakecluster import schema
from autoscaler.types.spec import MetricIdentifier
from autoscaler.types.status import UNREAD, Condition, ExternalMetricStatus, MetricStatus, MetricValue, Status
from autoscaler.wire import encode_status
from tools.crd.__main__ import PLACE
from tools.crd.definition import definition, printed


def version() -> Any:
    return definition()["spec"]["versions"][0]


def root() -> Any:
    return version()["schema"]["openAPIV3Schema"]


def test_the_file_is_what_the_types_make_of_it():
    assert PLACE.read_text() == printed(), "run `make manifests`"


def test_the_file_is_the_definition():
    assert yaml.safe_load(PLACE.read_text()) == definition()


def test_every_field_is_described():
    def undescribed(inner: dict[str, Any], path: str) -> list[str]:
        missing = []
        for key, one in inner.get("properties", {}).items():
            place = f"{path}.{key}"
            if not one.get("description"):
                missing.append(place)
            missing += undescribed(one.get("items", one), place)
        return missing

    spec, status = root()["properties"]["spec"], root()["properties"]["status"]
    assert undescribed(spec, "spec") + undescribed(status, "status") == []


def test_whatever_a_status_says_can_be_written():
    failing = ExternalMetricStatus(MetricIdentifier(""), MetricValue(), fallback_status="")
    status = Status(
        current_metrics=(UNREAD, MetricStatus(type="External", external=failing)),
        conditions=(Condition("AbleToScale", "False"),),
        memory="v1",
    )
    sent = {key: value for key, value in encode_status(status).items() if value is not None}
    content = {"metadata": {"name": "it"}, "status": sent}
    kept = {"metadata": {"name": "it"}, "status": dict(sent)}
    schema.prune_and_default(root(), kept)
    assert kept["status"]["currentMetrics"] == content["status"]["currentMetrics"]
    assert [one for one in schema.problems(root(), kept) if one.startswith("status")] == []


def test_columns_are_those_of_an_hpa_and_the_fallback():
    shown = [one["name"] for one in version()["additionalPrinterColumns"] if not one.get("priority")]
    assert shown == ["Target", "MinPods", "MaxPods", "Replicas", "Desired", "Active", "Fallback", "Age"]
