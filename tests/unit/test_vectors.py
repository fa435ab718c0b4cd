"""Every vector that Kubernetes' own code computed, run through ours: all of them, and all pass."""

from pathlib import Path

import pytest

from autoscaler.conformance.report import print_report, run_file

FOLDER = Path(__file__).parents[1] / "vectors"
FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.json"))
AT_LEAST = {
    "behavior.json": 730,
    "quantity.json": 1260,
    "queue.json": 24,
    "reconcile.json": 230,
    "replicas.json": 870,
    "selector.json": 260,
    "validation.json": 450,
}


@pytest.fixture(scope="module")
def reports():
    return {name: run_file(FOLDER / name, name) for name in FILES}


@pytest.mark.parametrize("name", FILES)
def test_every_case_of_a_file_is_run_and_passes(reports, name):
    report = reports[name]

    assert (report.failures, report.not_run) == ((), ()), "\n".join(print_report(report))
    assert report.passed


@pytest.mark.parametrize("name", AT_LEAST)
def test_no_file_has_lost_its_cases(reports, name):
    assert reports[name].passed >= AT_LEAST[name]


def test_more_than_3800_cases_are_run(reports, record_property):
    total = sum(report.passed for report in reports.values())
    record_property("vectors", total)

    assert total > 3800, f"only {total} vectors were run"
