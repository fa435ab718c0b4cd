"""Run all vector files of a directory, and report per file how this code differs from Kubernetes."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from autoscaler.conformance import behavior, queue, reconcile, replicas, validation, values
from autoscaler.conformance.inputs import Comparison, Json


class Section(NamedTuple):
    """The cases under one key of a vector file, and the function that runs one case."""

    key: str
    inputs: tuple[str, ...]
    """Keys of the cases: they distinguish kinds of files with the same section, and name cases without an id."""

    run: Callable[[Json, Json], Comparison]
    """Takes the case and the whole document."""


SECTIONS: Final = (
    Section("cases", ("method",), replicas.run),
    Section("cases", ("kind",), behavior.run),
    Section("traces", ("steps",), reconcile.run),
    Section("traces", ("actions",), queue.run),
    Section("validation", ("object",), validation.validate),
    Section("defaulting", ("input",), validation.apply_defaults),
    Section("parse", ("s",), values.parse_quantity),
    Section("arithmetic", ("a", "b"), values.compute_quantities),
    Section("format", ("v",), values.format_quantity),
    Section("strings", ("s",), values.parse_selector),
    Section("objects", ("selector",), values.convert_selector),
)

_SHARED_INPUTS: Final = frozenset({"labelSets"})
_MAX_CASES_SHOWN: Final = 5
_MAX_DIFFERENCES_SHOWN: Final = 6


class Difference(Struct, frozen=True):
    """A field in which upstream's result and ours differ."""

    path: str
    expected: object
    got: object


class Result(Struct, frozen=True):
    """The result of a case; no differences means that it passed."""

    case: str
    differences: tuple[Difference, ...] = ()


class FileReport(Struct, frozen=True):
    """The result of one file."""

    name: str
    passed: int = 0
    failures: tuple[Result, ...] = ()
    not_run: tuple[str, ...] = ()
    """Sections that were not run; each makes the run fail."""


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
    results: list[Result] = []
    not_run: list[str] = []
    for key, cases in document.items():
        if not isinstance(cases, list) or key in _SHARED_INPUTS:
            continue
        section = _section(key, cases)
        if section is None:
            not_run.append(f"{len(cases)} cases in unknown section {key!r}")
        else:
            results += [_run_case(section, index, case, document) for index, case in enumerate(cases)]
    if not results and not not_run:
        not_run.append("no section of cases")
    failures = tuple(result for result in results if result.differences)
    return FileReport(name, len(results) - len(failures), failures, tuple(not_run))


def _section(key: str, cases: Sequence[object]) -> Section | None:
    """Return the section of this key with the inputs of any of the cases; the other cases then fail."""
    keys = set().union(*(case for case in cases if isinstance(case, dict)))
    return next((section for section in SECTIONS if section.key == key and keys.issuperset(section.inputs)), None)


def _run_case(section: Section, index: int, case: Json, document: Json) -> Result:
    """Run one case; an exception is reported as a difference, so that the other cases still run."""
    name = f"{section.key}[{index}]"
    try:
        name = case.get("id") or " ".join([section.key, *(repr(case[key]) for key in section.inputs)])
        return Result(name, tuple(compare("", *section.run(case, document))))
    except Exception as error:  # noqa: BLE001 - the report shows any exception
        return Result(name, (Difference("exception", None, f"{type(error).__name__}: {error}"),))


def compare(path: str, expected: object, got: object) -> Iterator[Difference]:
    """Yield the differences between two JSON values, each at its innermost path; null equals a missing key."""
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key in [*expected, *(key for key in got if key not in expected)]:
            yield from compare(f"{path}.{key}" if path else str(key), expected.get(key), got.get(key))
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (left, right) in enumerate(zip(expected, got, strict=True)):
            yield from compare(f"{path}[{index}]", left, right)
    elif expected != got or isinstance(expected, bool) is not isinstance(got, bool):
        yield Difference(path, expected, got)


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
    rows = [("", "Kubernetes", "Steadyscale")]
    for difference in differences[:_MAX_DIFFERENCES_SHOWN]:
        expected, got = (
            json.dumps(value, ensure_ascii=False, default=str) for value in (difference.expected, difference.got)
        )
        rows.append((difference.path, expected, got))
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    for path, expected, got in rows:
        yield f"        {path:<{first}}  {expected:<{second}}  {got}".rstrip()
    if len(differences) > _MAX_DIFFERENCES_SHOWN:
        yield f"        … and {len(differences) - _MAX_DIFFERENCES_SHOWN} more differences"
