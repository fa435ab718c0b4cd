"""The paths of the kube-state-metrics configuration exist in the schema of PodAutoscaler."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.manifests.rendered import MANIFESTS
from tools.crd.definition import definition

CONFIGURATION = MANIFESTS / "kube-state-metrics" / "custom-resource-state.yaml"
SCHEMA = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
(RESOURCE,) = yaml.safe_load(CONFIGURATION.read_text())["spec"]["resources"]


def resolve(schema: Any, path: list[str]) -> Any:
    """Return the schema of a field; of a list, that of its items."""
    for key in path:
        schema = schema["properties"][key]
    return schema.get("items", schema)


def paths() -> Iterator[object]:
    for metric in RESOURCE["metrics"]:
        each = metric["each"]
        content = each[each["type"].lower()]
        base = content.get("path", [])
        inner = [*content.get("labelsFromPath", {}).values(), content.get("valueFrom", [])]
        yield from (pytest.param([base, path], id=f"{metric['name']} {'.'.join(base + path)}") for path in inner)


@pytest.mark.parametrize("parts", list(paths()))
def test_path_exists_in_the_schema(parts: list[list[str]]) -> None:
    schema = SCHEMA
    for path in parts:
        schema = resolve(schema, path)
    assert schema


def test_kind_is_that_of_the_definition() -> None:
    names = definition()["spec"]["names"]
    assert RESOURCE["groupVersionKind"] == {"group": "steadyscale.dev", "version": "v1beta1", "kind": names["kind"]}
    assert RESOURCE["labelsFromPath"] == {"namespace": ["metadata", "namespace"], "podautoscaler": ["metadata", "name"]}
