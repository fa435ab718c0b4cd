"""``steadyscale simulate``: shows what autoscalers would have done on recorded load."""

import argparse
import sys
from collections.abc import Iterable, Sequence

from adapter.commands.output_file import write_output
from adapter.commands.progress import with_progress
from adapter.commands.simulation_inputs import make_simulations, read_history
from adapter.commands.simulation_output import csv_lines, json_text, table_lines
from adapter.commands.simulation_variants import read_variants
from adapter.debug.render import terminal_colors
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError
from adapter.simulation.html_report import render_report
from adapter.simulation.measure_table import measure_rows
from adapter.simulation.report_view import report_view
from autoscaler.simulation.run import SimulatedRun, collect
from autoscaler.simulation.simulation import Simulation

INVALID = 1
NOT_READ = 2


def run(options: argparse.Namespace) -> int:
    """Simulate all variants and print the result; return the exit code."""
    try:
        variants = read_variants(options.files, options.set)
        table = read_history(options, variants)
        simulations = make_simulations(options, variants, table)
    except ConfigInvalid as error:
        sys.stderr.writelines(f"{message}\n" for message in error.messages)
        return INVALID
    except BackendError as error:
        sys.stderr.write(f"Prometheus cannot be read: {error.message}{f': {error.detail}' if error.detail else ''}\n")
        return NOT_READ
    names = [variant.name for variant in variants]
    runs = [_run(simulation, name) for simulation, name in zip(simulations, names, strict=True)]
    write_output(options.file, _output(options, names, simulations, runs))
    return 0


def _output(
    options: argparse.Namespace, names: Sequence[str], simulations: Sequence[Simulation], runs: Sequence[SimulatedRun]
) -> Iterable[str]:
    match options.output:
        case "json":
            return [json_text(names, simulations, runs)]
        case "csv":
            return csv_lines(names, simulations, runs)
        case "html":
            return [render_report(report_view(names, simulations, runs, measure_rows(simulations, runs)))]
        case _:
            return table_lines(names, simulations, runs, terminal_colors(sys.stdout))


def _run(simulation: Simulation, name: str) -> SimulatedRun:
    steps = simulation.run()
    return collect(simulation, with_progress(steps, simulation, f"simulating {name}"))
