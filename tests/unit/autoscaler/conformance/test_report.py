"""Running vector files, reporting results and comparing values."""

import json

import pytest

from autoscaler.conformance import behavior, inputs, queue, reconcile, replicas, validation
from autoscaler.conformance.report import FileReport, Tally, print_report, run_directory, run_file
from autoscaler.conformance.result import Case, Difference, Result, compare, run_case
from autoscaler.types.observation import FailureClass, UnavailableReading
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
    ("section", "reason"),
    [
        pytest.param([ONE, {}], "1 of 2 cases in format: KeyError: 'v'", id="case without input"),
        pytest.param([ONE, 5, ONE], "2 of 3 cases in format: TypeError", id="case that is a number"),
        pytest.param(5, "1 of 1 cases in format: TypeError", id="section that is not a list"),
    ],
)
def test_section_with_an_invalid_case_is_reported(tmp_path, section, reason):
    report = report_of(tmp_path, {"format": section})

    (message,) = report.not_run
    assert message.startswith(reason)
    assert report.passed == (0 if section == 5 else 1)


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


@pytest.mark.parametrize(
    ("reports", "line", "code"),
    [
        pytest.param([FileReport("a", 2), FileReport("b", 3)], "5 passed, 0 failed", 0, id="all passed"),
        pytest.param([FileReport("a", 2, failing(1))], "2 passed, 1 failed", 1, id="one failed"),
        pytest.param([FileReport("a", 2, (), ("why",))], "2 passed, 0 failed", 1, id="not all run"),
        pytest.param([], "0 passed, 0 failed", 1, id="none run"),
    ],
)
def test_totals_and_exit_code(reports, line, code):
    tally = Tally()
    for report in reports:
        tally.add(report)

    assert (tally.closing_line, tally.exit_code) == (line, code)


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


def test_exception_is_reported_as_a_difference():
    def crash():
        raise KeyError("x")

    assert run_case(Case("a", crash)) == Result("a", (Difference("exception", None, "KeyError: 'x'"),))


# --- runners ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "owner", "section"),
    [
        pytest.param({"cases": [{"method": "x"}]}, replicas, "cases", id="replicas"),
        pytest.param({"cases": [{"kind": "x"}]}, behavior, "cases", id="behavior"),
        pytest.param({"traces": [{"steps": []}]}, reconcile, "traces", id="reconcile"),
        pytest.param({"traces": [{"actions": []}]}, queue, "traces", id="queue"),
        pytest.param({"validation": [], "defaulting": []}, validation, None, id="validation"),
    ],
)
def test_runner_recognizes_its_files_by_content(document, owner, section):
    runners = (replicas, behavior, reconcile, queue, validation)
    expected = (section,) if section else ("validation", "defaulting")

    assert {runner.__name__: runner.sections(document) for runner in runners} == {
        runner.__name__: expected if runner is owner else () for runner in runners
    }


def test_missing_object_metric_in_a_vector_is_an_api_error():
    assert inputs.object_reading({}, "requests") == UnavailableReading(
        "unable to fetch metrics from custom metrics API: the vector has no object metric requests",
        FailureClass.API_UNAVAILABLE,
    )


def test_unknown_metric_type_is_unavailable():
    assert inputs.reading_of(Metric(type="Weather"), {}) == UnavailableReading("unknown metric type")
