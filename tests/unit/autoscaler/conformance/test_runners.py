"""Each kind of vector file: equal results pass, and a difference in any compared output is reported with its path."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from autoscaler.conformance.report import run_file

VECTORS = Path(__file__).parents[3] / "vectors"

FIVE = {"format": "DecimalSI", "string": "+5", "canonical": "5", "milliValue": 5000, "value": 5, "float": "5e+00"}
QUANTITIES: dict[str, Any] = {
    "seed": 1,
    "parse": [
        FIVE | {"s": "+5", "ok": True, "sign": 1, "isZero": False, "asInt64": 5},
        {"s": "1Kii", "ok": False, "error": "unable to parse quantity's suffix"},
    ],
    "arithmetic": [{"a": "1", "b": "1", "add": "2", "sub": "0", "cmp": 0, "equal": True, "negA": "-1"}],
    "format": [{"v": 1, "milliDecimalSI": "1m", "milliBinarySI": "1m", "decimalSI": "1", "binarySI": "1"}],
}

A_IS_B = {"requirements": [{"key": "a", "operator": "=", "values": ["b"]}], "string": "a=b", "empty": False}
NO_SELECTOR = {"selectable": False, "string": "", "empty": False, "formatLabelSelector": "<none>", "plusV": "nil"}
INVALID = {
    "error": "another",
    "errorAlternatives": ["another", '"No" is not a valid label selector operator'],
    "formatLabelSelector": "<error>",
    "plusV": "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{"
    "LabelSelectorRequirement{Key:a,Operator:No,Values:[],},},}",
}
SELECTORS = {
    "labelSets": [{}, {"a": "b"}],
    "strings": [
        A_IS_B | {"s": "a=b", "ok": True, "matches": [1]},
        {"s": "", "ok": True, "string": "", "empty": True, "matches": [0, 1]},
    ],
    "objects": [
        NO_SELECTOR | {"selector": None, "ok": True, "matches": []},
        INVALID | {"selector": {"matchExpressions": [{"key": "a", "operator": "No"}]}, "ok": False, "matches": []},
    ],
}

OBJECT = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
}
VALID = {"id": "one", "op": "create", "featureGates": {}, "object": OBJECT, "errors": [], "apiServerErrorsSame": True}
WRONG = {"spec": {"maxReplicas": True}}


@pytest.fixture
def run(tmp_path):
    def run_document(document):
        (tmp_path / "some.json").write_text(json.dumps(document))
        return run_file(tmp_path / "some.json", "some.json")

    return run_document


@pytest.fixture
def paths(run):
    def paths_of_differences(document):
        return [difference.path for failure in run(document).failures for difference in failure.differences]

    return paths_of_differences


@pytest.mark.parametrize("document", [QUANTITIES, SELECTORS], ids=["quantities", "selectors"])
def test_equal_results_pass(run, document):
    report = run(document)

    assert (report.passed, report.failures, report.not_run) == (4, (), ())


@pytest.mark.parametrize(
    ("document", "name", "path", "expected", "got"),
    [
        pytest.param(
            {"format": [QUANTITIES["format"][0] | {"binarySI": "2"}]}, "format 1", "binarySI", "2", "1", id="format"
        ),
        pytest.param(
            {"arithmetic": [QUANTITIES["arithmetic"][0] | {"cmp": 1}]}, "arithmetic '1' '1'", "cmp", 1, 0, id="cmp"
        ),
        pytest.param(
            {"parse": [QUANTITIES["parse"][0] | {"float": "5.1"}]}, "parse '+5'", "float", 5.1, 5.0, id="float"
        ),
        pytest.param(
            {"parse": [{"s": "1Kii", "ok": False}]},
            "parse '1Kii'",
            "error",
            None,
            "unable to parse quantity's suffix",
            id="error that upstream does not report",
        ),
        pytest.param(
            {"labelSets": [{}], "strings": [{"s": "", "ok": True, "string": "", "empty": True, "matches": []}]},
            "strings ''",
            "matches",
            [],
            [0],
            id="selector that matches too much",
        ),
    ],
)
def test_difference_has_the_case_and_the_path(run, document, name, path, expected, got):
    (failure,) = run(document).failures
    (difference,) = failure.differences

    assert (failure.case, difference.path, difference.expected, difference.got) == (name, path, expected, got)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, [], id="no errors"),
        pytest.param(
            {"errors": [{"error": "x"}], "apiServerErrorsSame": False, "apiServerErrors": []},
            ["errors"],
            id="error that upstream reports",
        ),
        pytest.param(
            {"apiServerErrorsSame": False, "apiServerErrors": [{"error": "x"}]},
            ["apiServerErrors"],
            id="error that the API server reports",
        ),
        pytest.param({"old": OBJECT}, ["errors", "apiServerErrors"], id="update without a resource version"),
        pytest.param({"object": WRONG, "decodeError": "no"}, [], id="decode error of both"),
        pytest.param({"object": WRONG}, ["decodeError"], id="decode error only here"),
        pytest.param({"decodeError": "no"}, ["decodeError"], id="decode error only upstream"),
    ],
)
def test_validation_errors_are_compared(paths, changes, expected):
    assert paths({"validation": [VALID | changes]}) == expected


def test_defaults_are_compared(paths):
    assert "output.maxReplicas" in paths({"defaulting": [{"input": {}, "output": {"maxReplicas": 1}}]})


def changed(value):
    """Return a JSON value of the same type that differs in every leaf."""
    match value:
        case dict():
            return {key: changed(item) for key, item in value.items()}
        case list():
            return [changed(item) for item in value]
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value} changed"
        case _:
            return value


OUTPUTS = [
    *(("behavior", "cases", f"expect.{key}") for key in ("stabilized", "limited", "ableToScale", "scalingLimited")),
    *(("behavior", "cases", f"expect.{key}") for key in ("desired", "scaleUpLimit", "scaleDownLimit")),
    *(("behavior", "cases", f"expect.{key}After") for key in ("recommendations", "scaleUpEvents", "scaleDownEvents")),
    ("behavior", "cases", "expect.effectiveBehavior"),
    *(("replicas", "cases", f"expect.{key}") for key in ("error", "queries", "replicas", "usage", "utilization")),
    *(("replicas", "cases", f"expect.{key}") for key in ("timestamp", "podMetrics", "groups")),
    ("reconcile", "traces", "finalMemory"),
    *(("reconcile", "traces", f"steps.0.expect.{key}") for key in ("error", "scaledTo", "status", "events")),
    ("queue", "traces", "reconciles"),
]


@pytest.mark.parametrize(("file", "section", "path"), OUTPUTS, ids=lambda part: part)
def test_changed_output_of_a_vector_is_reported(run, file, section, path):
    document = json.loads((VECTORS / f"{file}.json").read_text())
    *parents, key = (int(part) if part.isdigit() else part for part in path.split("."))
    for original in document[section]:
        case = deepcopy(original)
        holder = case
        for parent in parents:
            holder = holder[parent]
        if holder.get(key) and changed(holder[key]) != holder[key]:
            holder[key] = changed(holder[key])
            break
    report = run(document | {section: [original]})
    assert (report.passed, report.failures) == (1, ())

    report = run(document | {section: [case]})

    (failure,) = report.failures
    assert all(key in difference.path for difference in failure.differences)
