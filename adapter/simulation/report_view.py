"""The data of the HTML report: measures, and columns that are reduced to what a screen can show. Pure."""

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any, Final, TypeAlias

from adapter.simulation.measure_table import MeasureRow
from autoscaler.algorithm.explain import step_text
from autoscaler.algorithm.propose import name_of
from autoscaler.simulation.run import FACTORS, SimulatedRun
from autoscaler.simulation.simulation import Simulation
from autoscaler.values.timestamps import format_rfc3339

Json: TypeAlias = dict[str, Any]
_BUCKETS: Final = 600
"""Parts of the period of which the report shows the extremes; a wide screen has about two pixels for each."""

_MAX_EXPLAINED: Final = 400
"""Decisions per variant whose steps the report contains: about 200 kB."""


def report_view(
    names: Sequence[str], simulations: Sequence[Simulation], runs: Sequence[SimulatedRun], rows: Sequence[MeasureRow]
) -> Json:
    """Return the data of a report."""
    scenario = simulations[0].scenario
    return {
        "start": format_rfc3339(scenario.start),
        "end": format_rfc3339(scenario.end),
        "decisions": len(runs[0].times),
        "model": scenario.model,
        "metrics": [name_of(metric) for metric in simulations[0].metrics],
        "measures": [{"label": row.label, "values": row.values} for row in rows],
        "variants": [
            _variant(name, simulation, run) for name, simulation, run in zip(names, simulations, runs, strict=True)
        ],
    }


def _variant(name: str, simulation: Simulation, run: SimulatedRun) -> Json:
    spec = simulation.scenario.autoscaler.spec
    shown = _indexes(run)
    explained = sorted(run.explained)
    kept = explained[:: max(1, -(-len(explained) // _MAX_EXPLAINED))]
    return {
        "name": name,
        "minReplicas": 1 if spec.min_replicas is None else spec.min_replicas,
        "maxReplicas": spec.max_replicas,
        "time": [round(run.times[index] * 1000) for index in shown],
        "replicas": [run.replicas[index] for index in shown],
        "ready": [run.ready[index] for index in shown],
        "demand": [_number(run.demand[index]) for index in shown],
        "values": [[_number(column[index]) for index in shown] for column in run.values],
        "state": ["fallback" if run.fallback[i] else "failed" if run.unavailable[i] else "ok" for i in shown],
        "factor": [FACTORS[run.factors[index]].value for index in shown],
        "under": [[round(start * 1000), round(end * 1000), share] for start, end, share in _shortages(run)],
        "explained": [{"time": round(run.times[index] * 1000), "steps": list(_texts(run, index))} for index in kept],
    }


def _texts(run: SimulatedRun, index: int) -> Iterator[str]:
    at, steps = run.explained[index]
    return (step_text(step, steps, at) for step in steps)


def _indexes(run: SimulatedRun) -> list[int]:
    """Return the decisions to show: all, or the extremes of each part of the period, so that no shortage is lost."""
    count = len(run.times)
    if count <= 3 * _BUCKETS:
        return list(range(count))
    found = {0, count - 1}
    for bucket in range(_BUCKETS):
        part = range(count * bucket // _BUCKETS, count * (bucket + 1) // _BUCKETS)
        found.add(part[0])
        found.add(max(part, key=lambda index: _known(run.demand[index]) - run.ready[index]))
        found.add(max(part, key=lambda index: run.replicas[index]))
    return sorted(found)


def _shortages(run: SimulatedRun) -> Iterator[tuple[float, float, float]]:
    """Yield start and end of periods with a shortage, and the share of the decisions in them that have one.

    A short run has the exact periods. Of a long one these are the parts of the period: if the shortages of a few
    decisions were extended to what a screen can show, they would look like one shortage without end.
    """
    count = len(run.times)
    ends = [*run.times[1:], run.end]
    size = 1 if count <= 3 * _BUCKETS else count / _BUCKETS
    for bucket in range(round(count / size)):
        part = range(round(bucket * size), round((bucket + 1) * size))
        short = sum(run.demand[index] > run.ready[index] for index in part)
        if short:
            yield run.times[part[0]], ends[part[-1]], round(short / len(part), 3)


def _known(value: float) -> float:
    return 0.0 if isnan(value) else value


def _number(value: float) -> float | None:
    if isnan(value):
        return None
    return int(value) if value.is_integer() else float(f"{value:.6g}")
