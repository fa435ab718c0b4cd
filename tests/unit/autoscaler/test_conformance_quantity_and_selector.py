"""The runners of quantity and selector vectors."""

import pytest

from autoscaler.conformance import quantity, selector
from autoscaler.conformance.result import Difference, run_case

FIVE = {"format": "DecimalSI", "string": "+5", "canonical": "5", "milliValue": 5000, "value": 5, "float": "5e+00"}
QUANTITIES = {
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


def test_runner_recognizes_its_own_files():
    assert quantity.sections(QUANTITIES) == ("parse", "arithmetic", "format")
    assert selector.sections(SELECTORS) == ("strings", "objects")
    assert quantity.sections(SELECTORS) == selector.sections(QUANTITIES) == ()


@pytest.mark.parametrize(("runner", "document"), [(quantity, QUANTITIES), (selector, SELECTORS)])
def test_correct_cases_have_no_differences(runner, document):
    results = [run_case(case) for case in runner.cases(document)]
    assert len(results) == 4
    assert not any(result.differences for result in results)


def test_case_is_named_by_section_and_input():
    assert [case.name for case in quantity.cases(QUANTITIES)][1:3] == ["parse '1Kii'", "arithmetic '1' '1'"]


@pytest.mark.parametrize(
    ("runner", "document", "difference"),
    [
        pytest.param(
            quantity,
            {"format": [QUANTITIES["format"][0] | {"binarySI": "2"}]},
            Difference("binarySI", "2", "1"),
            id="wrong",
        ),
        pytest.param(
            quantity, {"parse": [{"s": "", "ok": False}]}, Difference("error", None, "quantities must"), id="missing"
        ),
        pytest.param(
            selector,
            {"labelSets": [{}], "strings": [{"s": "", "ok": True, "string": "", "empty": True, "matches": []}]},
            Difference("matches", [], [0]),
            id="no match",
        ),
    ],
)
def test_difference_has_a_path(runner, document, difference):
    [case] = runner.cases(document)
    [actual] = run_case(case).differences
    assert (actual.path, actual.expected) == (difference.path, difference.expected)
    assert str(actual.got).startswith(str(difference.got))
