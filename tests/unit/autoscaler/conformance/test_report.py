"""Running vector files, reporting results and comparing values."""

import json

import pytest

from autoscaler.conformance import inputs
from autoscaler.conformance.report import Difference, FileReport, Result, compare, print_report, run_directory, run_file
from autoscaler.types.observation import UnavailableReading
from autoscaler.types.spec import Metric

ONE = {"v": 1, "milliDecimalSI": "1m", "milliBinarySI": "1m", "decimalSI": "1", "binarySI": "1"}
WRONG = ONE | {"decimalSI": "2"}


def write_file(directory, content, name="some.json"):
    path = directory / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def report_of(directory, content):
    return run_file(write_file(directory, content), "some.json")


def test_file_without_differences_passes(tmp_path):
    assert report_of(tmp_path, {"seed": 1, "format": [ONE, ONE]}) == FileReport("some.json", passed=2)


def test_case_with_a_difference_fails(tmp_path):
    failure = Result("format 1", (Difference("decimalSI", "2", "1"),))

    assert report_of(tmp_path, {"format": [ONE, WRONG]}) == FileReport("some.json", passed=1, failures=(failure,))


def test_case_with_an_exception_fails_and_the_others_still_run(tmp_path):
    report = report_of(tmp_path, {"parse": [{"s": 1}], "format": [ONE]})

    assert report.passed == 1
    (crashed,) = report.failures
    assert crashed.case == "parse 1"
    (difference,) = crashed.differences
    assert (difference.path, difference.expected) == ("exception", None)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param("{", "not JSON: Expecting property name enclosed in double quotes", id="invalid JSON"),
        pytest.param([ONE], "not a JSON object with sections of cases", id="list"),
        pytest.param({"seed": 1}, "no section of cases", id="no section"),
        pytest.param({"format": 5}, "no section of cases", id="section that is not a list"),
        pytest.param({"weather": [1, 2]}, "2 cases in unknown section 'weather'", id="unknown section"),
        pytest.param({"cases": [{"id": "x"}]}, "1 cases in unknown section 'cases'", id="unknown cases"),
        pytest.param({"cases": [1, 2]}, "2 cases in unknown section 'cases'", id="cases that are numbers"),
    ],
)
def test_content_that_is_not_run_is_reported(tmp_path, content, reason):
    report = report_of(tmp_path, content)

    assert (report.passed, report.failures) == (0, ())
    (message,) = report.not_run
    assert message.startswith(reason)


def test_unknown_section_in_a_known_file_is_reported(tmp_path):
    report = report_of(tmp_path, {"format": [ONE], "weather": [1]})

    assert report == FileReport("some.json", passed=1, not_run=("1 cases in unknown section 'weather'",))


@pytest.mark.parametrize(
    ("invalid", "error"),
    [
        pytest.param({}, "KeyError: 'v'", id="case without input"),
        pytest.param(5, "AttributeError: 'int' object has no attribute 'get'", id="case that is a number"),
    ],
)
def test_invalid_case_fails_under_its_index_and_the_others_still_run(tmp_path, invalid, error):
    report = report_of(tmp_path, {"format": [ONE, invalid, ONE]})

    assert report.passed == 2
    assert report.failures == (Result("format[1]", (Difference("exception", None, error),)),)


def test_files_are_found_recursively_and_run_sorted_by_name(tmp_path):
    (tmp_path / "deep").mkdir()
    write_file(tmp_path, {"format": [ONE]}, "z.json")
    write_file(tmp_path, {"format": [WRONG]}, "deep/b.json")
    write_file(tmp_path, "not a vector", "README.md")

    assert [(report.name, report.passed) for report in run_directory(tmp_path)] == [("deep/b.json", 0), ("z.json", 1)]


# --- report ---------------------------------------------------------------------------------------------------------


def failing(count, differences=1):
    return tuple(
        Result(f"case {index}", tuple(Difference(f"at{number}", "ä", None) for number in range(differences)))
        for index in range(count)
    )


def test_differences_are_shown_side_by_side():
    failure = Result("web", (Difference("status.replicas", 3, 5), Difference("x", {"a": 1}, None)))

    assert list(print_report(FileReport("some.json", 7, (failure,)))) == [
        "some.json                     7 passed     1 failed",
        "    web",
        "                         Kubernetes  Steadyscale",
        "        status.replicas  3           5",
        '        x                {"a": 1}    null',
    ]


def test_only_the_first_failures_are_shown():
    lines = list(print_report(FileReport("some.json", 0, failing(7), ("why",))))

    assert lines[1] == "    not run: why"
    assert [line.strip() for line in lines if line.strip().startswith("case")] == [
        f"case {index}" for index in range(5)
    ]
    assert lines[-1] == "    … and 2 more"


def test_only_the_first_differences_are_shown():
    lines = list(print_report(FileReport("some.json", 0, failing(1, differences=8))))

    assert lines[-2:] == ['        at5  "ä"         null', "        … and 2 more differences"]


# --- comparison -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "got", "differences"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="equal"),
        pytest.param({"a": None}, {}, [], id="null equals a missing key"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, [("a.b", 1, 2)], id="nested"),
        pytest.param({"a": [1, 2]}, {"a": [1, 3]}, [("a[1]", 2, 3)], id="list item"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, [("a", [1], [1, 2])], id="list lengths"),
        pytest.param({"a": 1}, {"a": True}, [("a", 1, True)], id="1 is not true"),
        pytest.param({}, {"b": 1}, [("b", None, 1)], id="unexpected key"),
        pytest.param({"a": {"b": 1}}, {"a": 5}, [("a", {"b": 1}, 5)], id="different types"),
    ],
)
def test_differences_have_the_innermost_path(expected, got, differences):
    assert list(compare("", expected, got)) == [Difference(*fields) for fields in differences]


def test_unknown_metric_type_is_unavailable():
    assert inputs.reading_of(Metric(type="Weather"), {}) == UnavailableReading("unknown metric type")
