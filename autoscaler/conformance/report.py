"""Run all vector files of a directory, and report per file how this code differs from Kubernetes."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from autoscaler.conformance import behavior, quantity, queue, reconcile, replicas, selector, validation
from autoscaler.conformance.result import Difference, Document, Result, Runner, run_case

RUNNERS: Final[tuple[Runner, ...]] = (replicas, behavior, reconcile, validation, quantity, selector, queue)

_SHARED_INPUTS: Final = frozenset({"labelSets"})
_MAX_CASES_SHOWN: Final = 5
_MAX_DIFFERENCES_SHOWN: Final = 6


class FileReport(Struct, frozen=True):
    """The result of one file."""

    name: str
    passed: int = 0
    failures: tuple[Result, ...] = ()
    not_run: tuple[str, ...] = ()
    """Sections and cases that were not run; each makes the run fail."""


def run_directory(directory: Path) -> Iterator[FileReport]:
    """Run every vector file below the directory, sorted by name."""
    for path in sorted(directory.rglob("*.json")):
        yield run_file(path, str(path.relative_to(directory)))


def run_file(path: Path, name: str) -> FileReport:
    """Run one file; its content determines its kind."""
    try:
        document = json.loads(path.read_bytes())
    except ValueError as error:
        return FileReport(name, not_run=(f"not JSON: {error}",))
    if not isinstance(document, dict):
        return FileReport(name, not_run=("not a JSON object with sections of cases",))
    return _run_document(document, name)


def _run_document(document: Document, name: str) -> FileReport:
    results: list[Result] = []
    known = set(_SHARED_INPUTS)
    not_run: list[str] = []
    for runner in RUNNERS:
        sections = _sections(runner, document)
        known.update(sections)
        own_results, problem = _run_cases(runner, document) if sections else ([], "")
        count = sum(_size(document[section]) for section in sections)
        if problem or count != len(own_results):
            not_run.append(f"{count - len(own_results)} of {count} cases in {', '.join(sections)}{problem}")
        results += own_results
    not_run += [
        f"{len(value)} cases in unknown section {key!r}"
        for key, value in document.items()
        if isinstance(value, list) and key not in known
    ]
    if not results and not not_run:
        not_run.append("no section of cases")
    failures = tuple(result for result in results if result.differences)
    return FileReport(name, len(results) - len(failures), failures, tuple(not_run))


def _sections(runner: Runner, document: Document) -> tuple[str, ...]:
    """Return the sections that a runner recognizes; a document of another shape has none."""
    try:
        return runner.sections(document)
    except TypeError:
        return ()


def _run_cases(runner: Runner, document: Document) -> tuple[list[Result], str]:
    """Run the cases until one cannot be decoded, and return the results and that error."""
    results: list[Result] = []
    try:
        for case in runner.cases(document):
            results.append(run_case(case))  # noqa: PERF401 - keep the results before an invalid case
    except Exception as error:  # noqa: BLE001 - the report shows any exception
        return results, f": {type(error).__name__}: {error}"
    return results, ""


def _size(section: object) -> int:
    return len(section) if isinstance(section, list) else 1


def print_report(report: FileReport) -> Iterator[str]:
    """Yield the lines of one file's report, with the first differences side by side."""
    yield f"{report.name:<24} {report.passed:>6} passed  {len(report.failures):>4} failed"
    for reason in report.not_run:
        yield f"    not run: {reason}"
    for failure in report.failures[:_MAX_CASES_SHOWN]:
        yield f"    {failure.case}"
        yield from _side_by_side(failure.differences)
    if len(report.failures) > _MAX_CASES_SHOWN:
        yield f"    … and {len(report.failures) - _MAX_CASES_SHOWN} more"


def _side_by_side(differences: Sequence[Difference]) -> Iterator[str]:
    shown = [
        (difference.path, _json(difference.expected), _json(difference.got))
        for difference in differences[:_MAX_DIFFERENCES_SHOWN]
    ]
    rows = [("", "Kubernetes", "Steadyscale"), *shown]
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    for path, expected, got in rows:
        yield f"        {path:<{first}}  {expected:<{second}}  {got}".rstrip()
    if len(differences) > _MAX_DIFFERENCES_SHOWN:
        yield f"        … and {len(differences) - _MAX_DIFFERENCES_SHOWN} more differences"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


class Tally:
    """The totals over all files."""

    def __init__(self) -> None:
        self.passed = self.failed = self.not_run = 0

    def add(self, report: FileReport) -> None:
        """Add the counts of one file."""
        self.passed += report.passed
        self.failed += len(report.failures)
        self.not_run += len(report.not_run)

    @property
    def closing_line(self) -> str:
        """The last line of the output."""
        return f"{self.passed} passed, {self.failed} failed"

    @property
    def exit_code(self) -> int:
        """0 if at least one case ran, none was skipped, and all passed."""
        return 0 if self.passed and not self.failed and not self.not_run else 1
