"""All conformance vectors run and pass."""

from pathlib import Path

import pytest

from autoscaler.conformance.report import print_report, run_file

VECTORS = Path(__file__).parents[1] / "vectors"
FILES = sorted(str(path.relative_to(VECTORS)) for path in VECTORS.rglob("*.json"))
MINIMUM_CASES = {
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
    return {name: run_file(VECTORS / name, name) for name in FILES}


@pytest.mark.parametrize("name", FILES)
def test_all_cases_of_a_file_run_and_pass(reports, name):
    report = reports[name]

    assert (report.failures, report.not_run) == ((), ()), "\n".join(print_report(report))
    assert report.passed


@pytest.mark.parametrize("name", MINIMUM_CASES)
def test_file_has_at_least_the_minimum_number_of_cases(reports, name):
    assert reports[name].passed >= MINIMUM_CASES[name]


def test_more_than_3800_cases_run(reports, record_property):
    total = sum(report.passed for report in reports.values())
    record_property("vectors", total)

    assert total > 3800, f"only {total} vectors were run"
