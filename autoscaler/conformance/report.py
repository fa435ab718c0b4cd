"""Runs every vector file of a folder and tells, file by file, where Kubernetes and this code differ."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from autoscaler.conformance import behavior, quantity, queue, reconcile, replicas, selector, validation
from autoscaler.conformance.result import Difference, Document, Result, Runner, run_case

RUNNERS: Final[tuple[Runner, ...]] = (replicas, behavior, reconcile, validation, quantity, selector, queue)

_INPUTS_OF_ALL_CASES: Final = frozenset({"labelSets"})
_SHOWN_CASES: Final = 5
_SHOWN_DIFFERENCES: Final = 6


class FileReport(Struct, frozen=True):
    """What running one file gave."""

    name: str
    passed: int = 0
    failures: tuple[Result, ...] = ()
    not_run: tuple[str, ...] = ()
    """What the file holds that nothing here runs; each is a reason to fail."""


def run_folder(folder: Path) -> Iterator[FileReport]:
    """Run every vector file found below the folder, in the order of their names."""
    for path in sorted(folder.rglob("*.json")):
        yield run_file(path, str(path.relative_to(folder)))


def run_file(path: Path, name: str) -> FileReport:
    """Run one file, whatever kind its content shows it to be."""
    try:
        document = json.loads(path.read_bytes())
    except ValueError as error:
        return FileReport(name, not_run=(f"this is not JSON: {error}",))
    if not isinstance(document, dict):
        return FileReport(name, not_run=("this is not a JSON object with sections of cases",))
    return _run_document(document, name)


def _run_document(document: Document, name: str) -> FileReport:
    results: list[Result] = []
    known = set(_INPUTS_OF_ALL_CASES)
    missed: list[str] = []
    for runner in RUNNERS:
        sections = _sections(runner, document)
        known.update(sections)
        mine, problem = _run_cases(runner, document) if sections else ([], "")
        count = sum(_size(document[section]) for section in sections)
        if problem or count != len(mine):
            missed.append(f"{count - len(mine)} of {count} cases in {', '.join(sections)}{problem}")
        results += mine
    missed += [
        f"{len(value)} cases in section {key!r}, which no runner knows"
        for key, value in document.items()
        if isinstance(value, list) and key not in known
    ]
    if not results and not missed:
        missed.append("there is no section of cases in it")
    failures = tuple(result for result in results if result.differences)
    return FileReport(name, len(results) - len(failures), failures, tuple(missed))


def _sections(runner: Runner, document: Document) -> tuple[str, ...]:
    """Ask a runner whether it knows the document; what has another shape than it expects is not of its kind."""
    try:
        return runner.sections(document)
    except TypeError:
        return ()


def _run_cases(runner: Runner, document: Document) -> tuple[list[Result], str]:
    """Run the cases as far as they can be told apart, and say what was wrong with the first that cannot."""
    results: list[Result] = []
    try:
        for case in runner.cases(document):
            results.append(run_case(case))  # noqa: PERF401 - what ran before a bad one counts
    except Exception as error:  # noqa: BLE001 - whatever it was, the report names it
        return results, f": {type(error).__name__}: {error}"
    return results, ""


def _size(section: object) -> int:
    return len(section) if isinstance(section, list) else 1


def print_report(report: FileReport) -> Iterator[str]:
    """Tell how one file fared, with the first differences side by side."""
    yield f"{report.name:<24} {report.passed:>6} passed  {len(report.failures):>4} failed"
    for reason in report.not_run:
        yield f"    not run: {reason}"
    for failure in report.failures[:_SHOWN_CASES]:
        yield f"    {failure.case}"
        yield from _side_by_side(failure.differences)
    if len(report.failures) > _SHOWN_CASES:
        yield f"    … and {len(report.failures) - _SHOWN_CASES} more"


def _side_by_side(differences: Sequence[Difference]) -> Iterator[str]:
    shown = [(one.where, _written(one.expected), _written(one.got)) for one in differences[:_SHOWN_DIFFERENCES]]
    rows = [("", "Kubernetes", "Steadyscale"), *shown]
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    for where, expected, got in rows:
        yield f"        {where:<{first}}  {expected:<{second}}  {got}".rstrip()
    if len(differences) > _SHOWN_DIFFERENCES:
        yield f"        … and {len(differences) - _SHOWN_DIFFERENCES} more differences"


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


class Tally:
    """Counts reports as they come in."""

    def __init__(self) -> None:
        self.passed = self.failed = self.not_run = 0

    def add(self, report: FileReport) -> None:
        """Count one file."""
        self.passed += report.passed
        self.failed += len(report.failures)
        self.not_run += len(report.not_run)

    @property
    def closing_line(self) -> str:
        """The line that closes a run."""
        return f"{self.passed} passed, {self.failed} failed"

    @property
    def exit_code(self) -> int:
        """0 if something ran, everything ran, and everything passed."""
        return 0 if self.passed and not self.failed and not self.not_run else 1
