"""Validation of custom resources by their structural schema, with that of PodAutoscaler."""

import pytest

from adapter.decoding import structural_schema
from tools.crd.definition import definition

SCHEMA = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def lines(**target):
    external = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", **target}}
    reference = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
    metrics = [{"type": "External", "external": external}]
    content = {"spec": {"scaleTargetRef": reference, "maxReplicas": 5, "metrics": metrics}}
    return [problem.message for problem in structural_schema.problems(SCHEMA, content)]


@pytest.mark.parametrize("value", [0.5, 30, "30", "500m", " 5 "])
def test_quantity_is_a_positive_number_or_text(value):
    assert lines(averageValue=value) == []


@pytest.mark.parametrize("value", [0, -0.5, "0", "-5", "ten", True, False, [], {}, [1]])
def test_other_values_of_a_quantity_are_rejected(value):
    assert lines(averageValue=value)


def test_exactly_one_of_two_targets_is_required():
    assert lines(averageValue="5") == []
    for target in ({}, {"value": 5, "averageValue": 5}):
        assert "must have exactly one of value, averageValue" in "".join(lines(**target))


def test_any_of_several_alternatives_may_hold():
    alternatives = {"anyOf": [{"minimum": 5}, {"maximum": 2}]}
    assert [list(structural_schema.problems(alternatives, number)) == [] for number in (1, 3, 6)] == [True, False, True]
