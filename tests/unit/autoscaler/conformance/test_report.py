"""Files are known by what is in them, nothing is passed over in silence, and differences stand side by side."""

import json

import pytest

from autoscaler.conformance import behavior, inputs, queue, reconcile, replicas, validation
from autoscaler.conformance.report import FileReport, Tally, print_report, run_file, run_folder
from autoscaler.conformance.result import Case, Difference, Result, compare, run_case
from autoscaler.types.observation import FailureClass, UnavailableReading
from autoscaler.types.spec import Metric

ONE = {"v": 1, "milliDecimalSI": "1m", "milliBinarySI": "1m", "decimalSI": "1", "binarySI": "1"}
WRONG = ONE | {"decimalSI": "2"}


def written(folder, content, name="some.json"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def report_of(folder, content):
    return run_file(written(folder, content), "some.json")


def test_a_file_that_agrees(tmp_path):
    assert report_of(tmp_path, {"seed": 1, "format": [ONE, ONE]}) == FileReport("some.json", passed=2)


def test_a_case_that_differs_is_a_failure(tmp_path):
    failure = Result("format 1", (Difference("decimalSI", "2", "1"),))

    assert report_of(tmp_path, {"format": [ONE, WRONG]}) == FileReport("some.json", passed=1, failures=(failure,))


def test_a_case_that_crashes_is_a_failure_and_not_the_end(tmp_path):
    report = report_of(tmp_path, {"parse": [{"s": 1}], "format": [ONE]})

    assert report.passed == 1
    (crashed,) = report.failures
    assert crashed.case == "parse 1"
    (difference,) = crashed.differences
    assert (difference.where, difference.expected) == ("it crashed", "an answer")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param("{", "this is not JSON: Expecting property name enclosed in double quotes", id="bad JSON"),
        pytest.param([ONE], "this is not a JSON object with sections of cases", id="a list"),
        pytest.param({"seed": 1}, "there is no section of cases in it", id="no section"),
        pytest.param(
            {"weather": [1, 2]}, "2 cases in section 'weather', which no runner knows", id="an unknown section"
        ),
        pytest.param({"cases": [{"id": "x"}]}, "1 cases in section 'cases', which no runner knows", id="unknown cases"),
        pytest.param({"cases": [1, 2]}, "2 cases in section 'cases', which no runner knows", id="cases that are none"),
    ],
)
def test_what_is_not_run_is_told(tmp_path, content, reason):
    report = report_of(tmp_path, content)

    assert (report.passed, report.failures) == (0, ())
    (told,) = report.not_run
    assert told.startswith(reason)


def test_an_unknown_section_beside_a_known_one_is_told_too(tmp_path):
    report = report_of(tmp_path, {"format": [ONE], "weather": [1]})

    assert report == FileReport("some.json", passed=1, not_run=("1 cases in section 'weather', which no runner knows",))


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        pytest.param([ONE, {}], "1 of 2 cases in format: KeyError: 'v'", id="a case without its input"),
        pytest.param([ONE, 5, ONE], "2 of 3 cases in format: TypeError", id="a case that is none"),
        pytest.param(5, "1 of 1 cases in format: TypeError", id="a section that is no list"),
    ],
)
def test_a_section_that_cannot_be_run_to_its_end_is_told(tmp_path, section, reason):
    report = report_of(tmp_path, {"format": section})

    (told,) = report.not_run
    assert told.startswith(reason)
    assert report.passed == (0 if section == 5 else 1)


def test_files_are_found_below_the_folder_and_run_in_the_order_of_their_names(tmp_path):
    (tmp_path / "deep").mkdir()
    written(tmp_path, {"format": [ONE]}, "z.json")
    written(tmp_path, {"format": [WRONG]}, "deep/b.json")
    written(tmp_path, "not a vector", "README.md")

    assert [(report.name, report.passed) for report in run_folder(tmp_path)] == [("deep/b.json", 0), ("z.json", 1)]


# --- telling ---------------------------------------------------------------------------------------------------------


def failing(count, differences=1):
    return tuple(
        Result(f"case {index}", tuple(Difference(f"at{number}", "ä", None) for number in range(differences)))
        for index in range(count)
    )


def test_differences_stand_side_by_side():
    failure = Result("web", (Difference("status.replicas", 3, 5), Difference("x", {"a": 1}, None)))

    assert list(print_report(FileReport("some.json", 7, (failure,)))) == [
        "some.json                     7 passed     1 failed",
        "    web",
        "                         Kubernetes  Steadyscale",
        "        status.replicas  3           5",
        '        x                {"a": 1}    null',
    ]


def test_of_many_failures_the_first_are_shown():
    lines = list(print_report(FileReport("some.json", 0, failing(7), ("why",))))

    assert lines[1] == "    not run: why"
    assert [line.strip() for line in lines if line.strip().startswith("case")] == [
        f"case {index}" for index in range(5)
    ]
    assert lines[-1] == "    … and 2 more"


def test_of_many_differences_the_first_are_shown():
    lines = list(print_report(FileReport("some.json", 0, failing(1, differences=8))))

    assert lines[-2:] == ['        at5  "ä"         null', "        … and 2 more differences"]


@pytest.mark.parametrize(
    ("reports", "line", "code"),
    [
        pytest.param([FileReport("a", 2), FileReport("b", 3)], "5 passed, 0 failed", 0, id="all is well"),
        pytest.param([FileReport("a", 2, failing(1))], "2 passed, 1 failed", 1, id="one fails"),
        pytest.param([FileReport("a", 2, (), ("why",))], "2 passed, 0 failed", 1, id="something was not run"),
        pytest.param([], "0 passed, 0 failed", 1, id="nothing was run"),
    ],
)
def test_a_tally(reports, line, code):
    tally = Tally()
    for report in reports:
        tally.add(report)

    assert (tally.closing_line, tally.exit_code) == (line, code)


# --- comparing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "got", "differences"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="the same"),
        pytest.param({"a": None}, {}, [], id="null is like nothing"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, [("a.b", 1, 2)], id="deep inside"),
        pytest.param({"a": [1, 2]}, {"a": [1, 3]}, [("a[1]", 2, 3)], id="in a list"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, [("a", [1], [1, 2])], id="lists of different length"),
        pytest.param({"a": 1}, {"a": True}, [("a", 1, True)], id="one is not true"),
        pytest.param({}, {"b": 1}, [("b", None, 1)], id="more than was expected"),
        pytest.param({"a": {"b": 1}}, {"a": 5}, [("a", {"b": 1}, 5)], id="of different kinds"),
    ],
)
def test_differences_are_named_at_the_deepest_place(expected, got, differences):
    assert list(compare("", expected, got)) == [Difference(*one) for one in differences]


def test_a_crash_is_that_cases_failure():
    def crash():
        raise KeyError("x")

    assert run_case(Case("a", crash)) == Result("a", (Difference("it crashed", "an answer", "KeyError: 'x'"),))


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
def test_a_runner_knows_its_kind_by_content(document, owner, section):
    runners = (replicas, behavior, reconcile, queue, validation)
    expected = (section,) if section else ("validation", "defaulting")

    assert {runner.__name__: runner.sections(document) for runner in runners} == {
        runner.__name__: expected if runner is owner else () for runner in runners
    }


def test_a_vector_must_hold_the_object_it_asks_for():
    assert inputs.object_reading({}, "requests") == UnavailableReading(
        "unable to fetch metrics from custom metrics API: the vector has no object metric requests",
        FailureClass.API_UNAVAILABLE,
    )


def test_a_type_that_is_not_known_has_nothing_to_read():
    assert inputs.reading_of(Metric(type="Weather"), {}) == UnavailableReading("there is nothing to read for this type")
