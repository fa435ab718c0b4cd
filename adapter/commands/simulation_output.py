"""Text, JSON and CSV of simulations. Pure."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import isnan
from typing import Any, Final

import msgspec

from adapter.debug.render import Colors, escape
from adapter.simulation.measure_table import measure_rows
from autoscaler.algorithm.formatting import count
from autoscaler.algorithm.propose import name_of
from autoscaler.simulation.measures import measure
from autoscaler.simulation.run import FACTORS, SimulatedRun
from autoscaler.simulation.simulation import Simulation
from autoscaler.values.timestamps import format_rfc3339

_NAME_WIDTH: Final = 28


def table_lines(
    names: Sequence[str], simulations: Sequence[Simulation], runs: Sequence[SimulatedRun], colors: Colors
) -> Iterator[str]:
    """Yield the lines of the table of measures."""
    scenario = simulations[0].scenario
    period = f"{format_rfc3339(scenario.start)} to {format_rfc3339(scenario.end)}"
    yield f"{period}, {count(len(runs[0].times), 'decision')}, model {scenario.model}\n\n"
    shown = [escape(name) if len(name) <= _NAME_WIDTH else f"…{escape(name)[1 - _NAME_WIDTH :]}" for name in names]
    rows = measure_rows(simulations, runs)
    widths = [max(len(name), *(len(row.values[index]) for row in rows)) for index, name in enumerate(shown)]
    first = max(len(row.label) for row in rows)
    cells = "  ".join(f"{name:>{width}}" for name, width in zip(shown, widths, strict=True))
    yield f"{'':{first}}  {colors.bold}{cells}{colors.reset}\n"
    for row in rows:
        cells = "  ".join(f"{text:>{width}}" for text, width in zip(row.values, widths, strict=True))
        yield f"{row.label:<{first}}  {cells}\n"


def json_text(names: Sequence[str], simulations: Sequence[Simulation], runs: Sequence[SimulatedRun]) -> str:
    scenario = simulations[0].scenario
    view = {
        "start": format_rfc3339(scenario.start),
        "end": format_rfc3339(scenario.end),
        "model": scenario.model,
        "variants": [_view(name, run) for name, run in zip(names, runs, strict=True)],
    }
    return f"{json.dumps(view, indent=2, ensure_ascii=False)}\n"


def _view(name: str, run: SimulatedRun) -> dict[str, Any]:
    return {
        "name": name,
        "decisions": len(run.times),
        "measures": msgspec.to_builtins(msgspec.structs.asdict(measure(run))),
        "rescales": [
            {"at": _time(run.times[index]), "before": before, "after": after} for index, before, after in run.rescales
        ],
    }


def csv_lines(names: Sequence[str], simulations: Sequence[Simulation], runs: Sequence[SimulatedRun]) -> Iterator[str]:
    """Yield every decision of every variant, in the order of the variants."""
    metrics = [name_of(metric) for metric in simulations[0].metrics]
    columns = ("variant", "time", *(f"{name} value" for name in metrics), "demand", "replicas", "ready")
    yield _csv_line([*columns, "limitingFactor", "fallback"])
    for name, run in zip(names, runs, strict=True):
        for index, time in enumerate(run.times):
            values = [_number(column[index]) for column in run.values[: len(metrics)]]
            factor, fallback = FACTORS[run.factors[index]].value, "true" if run.fallback[index] else "false"
            numbers = (_number(run.demand[index]), run.replicas[index], run.ready[index])
            yield _csv_line([name, _time(time), *values, *numbers, factor, fallback])


def _csv_line(cells: Sequence[object]) -> str:
    output = io.StringIO()
    csv.writer(output, lineterminator="\n").writerow(cells)
    return output.getvalue()


def _number(value: float) -> object:
    if isnan(value):
        return ""
    return int(value) if value.is_integer() else value


def _time(time: float) -> str:
    return format_rfc3339(datetime.fromtimestamp(time, UTC))
