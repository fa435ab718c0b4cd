"""Text and CSV output of ``steadyscale history`` and ``steadyscale explain --at``. Pure."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, TypeAlias

from adapter.debug.render import Colors, escape, explanation_lines
from autoscaler.algorithm.formatting import count

Json: TypeAlias = Mapping[str, Any]

_COLUMNS: Final = ("time", "current", "replicas", "state", "limitingFactor", "omitted")
_METRIC_COLUMNS: Final = ("value", "target", "proposal", "state")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that spreadsheet programs evaluate."""


def moment_lines(view: Json, colors: Colors) -> Iterator[str]:
    """Yield the lines for a response of ``/debug/history/...?at=...``."""
    color = colors.dim if view["status"] == "decided" else colors.warning
    yield f"{colors.bold}at {time_text(view['at'])} UTC{colors.reset}: {color}{escape(view['message'])}{colors.reset}"
    if view["decision"] is not None:
        yield ""
        yield from explanation_lines(view["decision"], colors)


def period_lines(view: Json, colors: Colors) -> Iterator[str]:
    """Yield the lines for a response of ``/debug/history/...?since=...``."""
    name = escape(f"{view['namespace']}/{view['name']}")
    yield f"{colors.bold}{name}{colors.reset}  {time_text(view['since'])} to {time_text(view['until'])} UTC"
    if view["beginsAt"] is None:
        yield f"{colors.warning}nothing is recorded{colors.reset}"
    elif view["beginsAt"] > view["since"]:
        yield f"{colors.warning}the history begins at {time_text(view['beginsAt'])} UTC{colors.reset}"
    if view["truncated"]:
        yield f"{colors.warning}only the newest records are shown: choose a shorter period{colors.reset}"
    yield ""
    rows = [(record["at"], _record_text(record, colors)) for record in view["records"]]
    rows += [
        (gap["start"], f"{colors.warning}nothing recorded until {_end(gap)}{colors.reset}") for gap in view["gaps"]
    ]
    yield from _lines(sorted(rows, key=lambda row: row[0]))
    if not view["records"]:
        yield "no decision for this autoscaler in this period"


def _lines(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield a line for each time and text; consecutive records that differ only in other steps share one."""
    for text, group in groupby(rows, key=lambda row: row[1]):
        first, *more = (time_text(time) for time, _ in group)
        yield f"{first}  {text}" + (f" (and {count(len(more), 'more record')} until {more[-1]})" if more else "")


def _end(gap: Json) -> str:
    return f"{time_text(gap['end'])}: {escape(gap['reason'])}"


def _record_text(record: Json, colors: Colors) -> str:
    if record["deleted"]:
        return "deleted"
    current, replicas = record["current"], record["replicas"]
    change = f"{current} → {replicas}" if current != replicas else f"{replicas}"
    omitted = f" ({count(record['omitted'], 'change')} before it not recorded)" if record["omitted"] else ""
    state = escape(record["state"])
    factor = record["limitingFactor"]
    reason = escape(f"{factor}; {record['reason']}" if factor else record["reason"])
    return f"{change:>9}  {state:<18}  {colors.dim}{reason}{omitted}{colors.reset}"


def time_text(time: str) -> str:
    """Return a timestamp without fractions of seconds: ``2026-11-17 03:12:00``."""
    return time[:19].replace("T", " ")


def csv_text(view: Json) -> str:
    """Return the records of a response as CSV: one row for each record, four columns for each metric."""
    metrics = list(dict.fromkeys(metric["name"] for record in view["records"] for metric in record["metrics"]))
    output = io.StringIO()
    rows = csv.writer(output, lineterminator="\n")
    rows.writerow([*_COLUMNS, *(_cell(f"{name} {column}") for name in metrics for column in _METRIC_COLUMNS)])
    rows.writerows(_row(record, metrics) for record in view["records"])
    return output.getvalue()


def _row(record: Json, metrics: Sequence[str]) -> list[object]:
    found = {metric["name"]: metric for metric in record["metrics"]}
    fields = ("at", "current", "replicas", "state", "limitingFactor", "omitted")
    values = [record[field] for field in fields]
    values += [found.get(name, {}).get(column) for name in metrics for column in _METRIC_COLUMNS]
    return ["" if value is None else _cell(value) for value in values]


def _cell(value: object) -> object:
    """Return a cell that no spreadsheet program evaluates: the names of metrics come from tenants."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
