"""``steadyscale check`` finds every mistake of an object: none hides another."""

import copy
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.custom_resources.object_problems import autoscaler_problems, external_metric_problems
from tests.mutations import EXTERNAL_METRICS, POD_AUTOSCALER, mutated

MISTAKES: dict[str, tuple[tuple[str, ...], Any]] = {
    "apiVersion": (("apiVersion",), "steadyscale.dev/v1"),
    "metadata.labels.team": (("metadata", "labels", "team"), 5),
    "spec.scaleTargetRef.nam": (("spec", "scaleTargetRef", "nam"), "web"),
    "spec.scaleTargetRef.name": (("spec", "scaleTargetRef", "name"), 5),
    "spec.minReplicas": (("spec", "minReplicas"), "two"),
    "spec.maxReplicas": (("spec", "maxReplicas"), "ten"),
    "spec.mode": (("spec", "mode"), "Asleep"),
    "spec.metrics[0].external.target.averageValue": (
        ("spec", "metrics", "0", "external", "target", "averageValue"),
        True,
    ),
    "spec.metrics[0].external.fallback.replicas": (("spec", "metrics", "0", "external", "fallback", "replicas"), 0),
    "spec.metrics[0].external.metric.selector.matchLabels.queue": (
        ("spec", "metrics", "0", "external", "metric", "selector", "matchLabels", "queue"),
        7,
    ),
    "spec.metrics[1].resource": (("spec", "metrics", "1", "resource"), "cpu"),
    "spec.metrics[3].type": (("spec", "metrics", "3", "type"), 1),
    "spec.behavior.scaleUp.policies": (("spec", "behavior", "scaleUp", "policies"), []),
    "spec.behavior.scaleDown": (("spec", "behavior", "scaleDown"), []),
}
MISTAKES_OF_A_METRIC: dict[str, tuple[tuple[str, ...], Any]] = {
    "apiVersion": (("apiVersion",), None),
    "metadata.annotations": (("metadata", "annotations"), []),
    "spec.backned": (("spec", "backned"), "main"),
    "spec.query": (("spec", "query"), "sum(x"),
    "spec.aliases[0]": (("spec", "aliases", "0"), "status"),
    "spec.labels": (("spec", "labels"), "queue"),
    "spec.aggregation": (("spec", "aggregation"), "median"),
    "spec.interval": (("spec", "interval"), "1s"),
    "spec.deadline": (("spec", "deadline"), 5),
    "spec.onEmpty": (("spec", "onEmpty"), False),
}


def with_mistakes(document: Any, mistakes: list[tuple[tuple[str, ...], Any]]) -> Any:
    document = copy.deepcopy(document)
    for keys, value in mistakes:
        container = document
        for key in keys[:-1]:
            container = container[int(key) if key.isdigit() else key]
        last = keys[-1]
        container[int(last) if last.isdigit() else last] = value
    return document


@settings(deadline=None, max_examples=300)
@given(st.sets(st.sampled_from(sorted(MISTAKES))))
def test_every_mistake_of_a_pod_autoscaler_is_found_and_nothing_else(paths: set[str]):
    document = with_mistakes(POD_AUTOSCALER, [MISTAKES[path] for path in sorted(paths)])

    assert {problem.path for problem in autoscaler_problems(document)} == paths | consequences(paths)


def consequences(paths: set[str]) -> set[str]:
    """Return the problems that the mistakes cause in other fields."""
    return {"spec.pausedUntil"} if "spec.mode" in paths else set()


@settings(deadline=None, max_examples=300)
@given(st.sets(st.sampled_from(sorted(MISTAKES_OF_A_METRIC))))
def test_every_mistake_of_an_external_metric_is_found_and_nothing_else(paths: set[str]):
    document = with_mistakes(EXTERNAL_METRICS[0], [MISTAKES_OF_A_METRIC[path] for path in sorted(paths)])

    assert {problem.path for problem in external_metric_problems(document, None)} == paths


def test_mistake_on_several_fields_is_found_beside_a_wrong_type():
    document = copy.deepcopy(POD_AUTOSCALER)
    document["spec"] |= {"metrics": [POD_AUTOSCALER["spec"]["metrics"][1]], "maxReplicas": "ten", "mode": "DryRun"}

    assert {problem.path for problem in autoscaler_problems(document)} == {
        "spec.maxReplicas",
        "spec.metrics",  # minReplicas is 0
        "spec.pausedUntil",
    }


@pytest.mark.parametrize("seed", range(200))
def test_any_document_is_checked_without_an_exception(seed: int):
    source = random.Random(seed)  # noqa: S311 - not for cryptography
    autoscaler_problems(mutated(POD_AUTOSCALER, source, 8)[0])
    external_metric_problems(mutated(source.choice(EXTERNAL_METRICS), source, 8)[0], None)
