"""Inputs of ``steadyscale simulate`` and ``steadyscale drill``: the history, and the scenarios.

Everything is read and checked before anything is simulated; problems are raised as ``ConfigInvalid``.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from adapter.commands.documents import STDIN
from adapter.commands.progress import show_progress
from adapter.commands.simulation_variants import Variant
from adapter.config.loading import load
from adapter.decoding.duration import parse_duration
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.history.moments import parse_moment
from adapter.process import clock
from adapter.simulation.csv_history import CsvOptions, read_csv
from adapter.simulation.history_table import HistoryTable, histories_for
from adapter.simulation.range_history import RangeRead, plan_reads, read_range
from autoscaler.algorithm.zero import minimum_of
from autoscaler.defaults import with_defaults
from autoscaler.settings import Settings
from autoscaler.simulation.metric_history import Outage
from autoscaler.simulation.scenario import Scenario, WorkloadModel
from autoscaler.simulation.simulation import InvalidScenario, Simulation
from autoscaler.values.quantity import Quantity, QuantityError

PROMETHEUS: Final = "prometheus"
"""The value of --history that reads the history from Prometheus."""


def read_history(options: argparse.Namespace, variants: Sequence[Variant]) -> HistoryTable:
    """Return the history of a CSV file, or of the metrics of the variants in Prometheus."""
    if options.history == PROMETHEUS:
        return _read_prometheus(options, variants)
    return _read_file(options)


def _read_prometheus(options: argparse.Namespace, variants: Sequence[Variant]) -> HistoryTable:
    """Return the history of the metrics of all variants; raise ``BackendError`` if it cannot be fetched."""
    config, now = load(options.config, {}), clock().replace(microsecond=0)
    reads: dict[str, RangeRead] = {}
    for _, autoscaler in variants:
        metrics = with_defaults(autoscaler.spec).metrics or ()
        reads |= plan_reads(config, autoscaler.metadata.namespace or variants[0].autoscaler.metadata.namespace, metrics)
    start = parse_time("--from", options.start or "7d", now).replace(microsecond=0)
    end = parse_time("--to", options.end or "now", now)
    step = parse_length("--step", options.step)
    if step < timedelta(seconds=1) or end <= start:
        raise ConfigInvalid([Problem("", "--step must be at least 1s, and --to after --from")])
    options.start, options.end = start.isoformat(), end.isoformat()
    reading = read_range(config.backends, [*reads.values()], (start, end), step, clock, _show_request)
    table, requests = asyncio.run(reading)
    show_progress("")
    sys.stderr.write(f"{requests} range {'query' if requests == 1 else 'queries'}\n")
    return table


def _show_request(done: int, total: int) -> None:
    show_progress(f"range query {done + 1} of {total}")


def _read_file(options: argparse.Namespace) -> HistoryTable:
    try:
        zone = ZoneInfo(options.timezone) if options.timezone != "UTC" else UTC
        scale = Decimal(options.scale)
    except (KeyError, ValueError, OSError, InvalidOperation):
        raise ConfigInvalid([Problem("", "--timezone or --scale is invalid")]) from None
    refuse = options.gaps == "error"
    max_age = None if options.max_gap is None else parse_length("--max-gap", options.max_gap)
    read = CsvOptions(zone, max_age, refuse, scale)
    file = Path(options.history)
    try:
        if file == STDIN:
            return read_csv(sys.stdin, read)
        with file.open(encoding="utf-8", newline="") as lines:
            return read_csv(lines, read)
    except OSError as error:
        raise ConfigInvalid([Problem(str(file), f"cannot read the file: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        raise ConfigInvalid([Problem(str(file), f"not UTF-8: {error.reason}")]) from None
    except ConfigInvalid as error:
        raise ConfigInvalid([Problem(f"{file} {one.path}".strip(), one.message) for one in error.problems]) from None


def make_simulations(options: argparse.Namespace, variants: Sequence[Variant], table: HistoryTable) -> list[Simulation]:
    """Return a simulation of each variant on the history; raise ``ConfigInvalid`` if one is not possible."""
    start, end = _period(options, table)
    simulations = []
    for variant in variants:
        metrics = with_defaults(variant.autoscaler.spec).metrics or ()
        try:
            scenario = Scenario(
                autoscaler=variant.autoscaler,
                histories=histories_for(metrics, table),
                start=start,
                end=end,
                replicas=max(minimum_of(variant.autoscaler.spec), 1),
                model=WorkloadModel(options.model),
                service_rate=options.service_rate,
                startup=parse_length("--startup", options.startup),
                requests=_requests(options.request),
                outages=tuple(_outage(text, end) for text in options.outage),
                settings=replace(Settings(), sync_period=parse_length("--period", options.period)),
            )
            simulations.append(_with_first_replicas(Simulation(scenario), options.replicas))
        except InvalidScenario as error:
            raise ConfigInvalid([Problem(variant.name, problem) for problem in error.args]) from None
    return simulations


def _with_first_replicas(simulation: Simulation, replicas: int | None) -> Simulation:
    """Return the simulation with these replicas at the start; by default what the first values ask for."""
    scenario, spec = simulation.scenario, simulation.scenario.autoscaler.spec
    if replicas is None:
        demand = simulation.step(simulation.first_state()).demand or 0
        replicas = min(max(demand, minimum_of(spec), 1), spec.max_replicas)
    return Simulation(replace(scenario, replicas=replicas))


def _period(options: argparse.Namespace, table: HistoryTable) -> tuple[datetime, datetime]:
    """Return the simulated period: by default from the first to the last sample, and one sync period more."""
    first, last = table.times[0], table.times[-1]
    last += min(parse_length("--period", options.period).total_seconds(), table.max_age)
    start, end = datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)
    start = start if options.start is None else parse_time("--from", options.start, end)
    end = end if options.end is None else parse_time("--to", options.end, end)
    if end.timestamp() <= first or start.timestamp() >= last:
        message = f"the history has no values in this period: it is from {_text(first)} to {_text(last)}"
        raise ConfigInvalid([Problem("--from and --to", message)])
    return max(start, datetime.fromtimestamp(first, UTC)), end


def _text(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"


def parse_time(option: str, text: str, now: datetime) -> datetime:
    """Parse a time; a duration is before ``now``."""
    try:
        return parse_moment(text, now)
    except ValueError as error:
        raise ConfigInvalid([Problem(option, str(error))]) from None


def parse_length(option: str, text: str) -> timedelta:
    try:
        if text.endswith("d") and text[:-1].isascii() and text[:-1].isdigit():
            return timedelta(days=int(text[:-1]))
        return parse_duration(text)
    except (ValueError, OverflowError) as error:
        raise ConfigInvalid([Problem(option, str(error))]) from None


def _outage(text: str, end: datetime) -> Outage:
    time, plus, length = text.rpartition("/")
    if not plus:
        raise ConfigInvalid([Problem("--outage", f"must be TIME/DURATION such as 2026-03-01T12:00Z/1h, is {text!r}")])
    start = parse_time("--outage", time, end).timestamp()
    return Outage(start, start + parse_length("--outage", length).total_seconds())


def _requests(texts: Sequence[str]) -> dict[str, Quantity]:
    try:
        return {name: Quantity.parse(value) for name, _, value in (text.partition("=") for text in texts)}
    except QuantityError as error:
        raise ConfigInvalid([Problem("--request", f"must be RESOURCE=QUANTITY such as cpu=500m: {error}")]) from None
