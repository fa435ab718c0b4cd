"""Reading of recorded metrics from CSV. Pure: the lines are an argument.

Three forms: ``timestamp,value``; ``timestamp`` and one column per metric; and the output of ``steadyscale history
-o csv``. Rows may be in any order. Every problem names its line.
"""

import csv
import itertools
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.sample import NotFiniteError, RangeError, milli_of
from adapter.simulation.history_table import HistoryTable, default_max_age

MAX_ROWS: Final = 3_000_000
_MAX_PROBLEMS: Final = 10
_MILLISECONDS: Final = 1e11
"""A number above is a time in milliseconds since the epoch: in seconds it is the year 5138."""

_DECISION_COLUMNS: Final = ("time", "current", "replicas", "state", "limitingFactor")
_VALUE_SUFFIX: Final = " value"
_MISSING: Final = frozenset({"", "nan", "null", "none", "na", "n/a", "-"})


class CsvOptions(NamedTuple):
    """How a file is read."""

    zone: tzinfo = UTC
    """The time zone of timestamps that name none."""

    max_age: timedelta | None = None
    refuse_gaps: bool = False
    scale: Decimal = Decimal(1)
    """Factor of all values, such as 1/60 for counts per minute."""


class _Row(NamedTuple):
    line: int
    time: float
    values: tuple[int | None, ...]
    current: int = 0


def read_csv(lines: Iterable[str], options: CsvOptions = CsvOptions()) -> HistoryTable:  # noqa: B008 - immutable
    """Return the table of a file; raise ``ConfigInvalid`` with the line numbers of all problems, at most ten."""
    reader = csv.reader(lines)
    try:
        header = [name.strip().removeprefix("\ufeff").removeprefix("'") for name in next(reader, [])]
        is_decisions = tuple(header[: len(_DECISION_COLUMNS)]) == _DECISION_COLUMNS
        columns = _decision_columns(header) if is_decisions else {name: i for i, name in enumerate(header) if i}
        _check_header(header, columns)
        rows, problems = _read_rows(reader, columns, options, current=1 if is_decisions else None)
    except csv.Error as error:
        raise ConfigInvalid([Problem(f"line {reader.line_num}", f"not CSV: {error}")]) from None
    problems += _duplicates(rows)
    if not problems and not rows:
        problems.append(Problem("", "the history is empty: it has a header but no rows"))
    if problems:
        raise ConfigInvalid(problems[:_MAX_PROBLEMS])
    return _table(rows, list(columns), options, is_decisions=is_decisions)


def _check_header(header: list[str], columns: Mapping[str, int]) -> None:
    if not header:
        raise ConfigInvalid([Problem("", "the history is empty")])
    if not columns:
        raise ConfigInvalid([Problem("line 1", "no column of a metric: the header must be timestamp,value")])
    if _is_timestamp(header[0]):
        raise ConfigInvalid([Problem("line 1", "no header: the first line must be timestamp,value")])


def _decision_columns(header: list[str]) -> dict[str, int]:
    return {name.removesuffix(_VALUE_SUFFIX): i for i, name in enumerate(header) if name.endswith(_VALUE_SUFFIX)}


def _read_rows(
    reader: "Iterable[list[str]]", columns: Mapping[str, int], options: CsvOptions, current: int | None
) -> tuple[list[_Row], list[Problem]]:
    rows: list[_Row] = []
    problems: list[Problem] = []
    for line, cells in enumerate(reader, 2):
        if not any(cells):
            continue
        try:
            values = tuple(_value(_cell(cells, index), name, options) for name, index in columns.items())
            replicas = 0 if current is None else int(_cell(cells, current))
            rows.append(_Row(line, _time(cells[0].strip(), options.zone), values, replicas))
        except (ValueError, OverflowError) as error:
            problems.append(Problem(f"line {line}", str(error)))
        if len(rows) > MAX_ROWS:
            problems.insert(
                0, Problem(f"line {line}", f"more than {MAX_ROWS:,} rows: aggregate them, or split the file")
            )
            break
        if len(problems) >= _MAX_PROBLEMS:
            break
    rows.sort(key=lambda row: row.time)
    return rows, problems


def _cell(cells: list[str], index: int) -> str:
    return cells[index].strip() if index < len(cells) else ""


def _value(text: str, name: str, options: CsvOptions) -> int | None:
    if text.lower() in _MISSING:
        if options.refuse_gaps:
            raise ValueError(f"{name} has no value")
        return None
    try:
        return milli_of(Decimal(text) * options.scale)
    except (NotFiniteError, InvalidOperation):
        raise ValueError(f"{name} is not a number: {text[:40]!r}") from None
    except RangeError as error:
        raise ValueError(f"{name} is out of range: {text[:40]!r} is {error}") from None


def _time(text: str, zone: tzinfo) -> float:
    try:
        number = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"not a timestamp: {text[:40]!r}") from None
        return (moment.replace(tzinfo=zone) if moment.tzinfo is None else moment).timestamp()
    seconds = number / 1000 if number > _MILLISECONDS else number
    datetime.fromtimestamp(seconds, UTC)  # raises if it is out of range
    return seconds


def _is_timestamp(text: str) -> bool:
    try:
        _time(text, UTC)
    except (ValueError, OverflowError):
        return False
    return True


def _duplicates(rows: list[_Row]) -> list[Problem]:
    """Return the rows whose time another row has with other values."""
    pairs = itertools.pairwise(rows)
    return [
        Problem(f"line {max(a.line, b.line)}", f"the same time as line {min(a.line, b.line)}, with other values")
        for a, b in pairs
        if a.time == b.time and (a.values, a.current) != (b.values, b.current)
    ]


def _table(rows: list[_Row], names: list[str], options: CsvOptions, *, is_decisions: bool) -> HistoryTable:
    unique = list({row.time: row for row in rows}.values())
    times = tuple(row.time for row in unique)
    if options.max_age is not None:
        max_age = options.max_age.total_seconds()
    else:
        # A decision history has a record only where something changed.
        max_age = float("inf") if is_decisions else default_max_age(times)
    if options.refuse_gaps:
        for before, after in itertools.pairwise(unique):
            if after.time - before.time > max_age:
                distance = timedelta(seconds=round(after.time - before.time))
                raise ConfigInvalid([Problem(f"line {after.line}", f"a gap of {distance} before this row")])
    columns = {name: tuple(row.values[index] for row in unique) for index, name in enumerate(names)}
    return HistoryTable(times, columns, max_age, tuple(row.current for row in unique) if is_decisions else None)
