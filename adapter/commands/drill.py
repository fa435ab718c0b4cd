"""``steadyscale drill``: finds the fallback that covers outages of the metrics."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

import yaml
from msgspec import structs, to_builtins

from adapter.commands.output_file import write_output
from adapter.commands.progress import show_progress, with_progress
from adapter.commands.simulation_inputs import make_simulations, parse_length, read_history
from adapter.commands.simulation_variants import read_variants
from adapter.decoding.duration import format_duration
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.errors import BackendError
from autoscaler.algorithm.formatting import count
from autoscaler.simulation.drill import DrillResult, effective_after, run_drill, with_checkpoints
from autoscaler.simulation.needs import needs, needs_by_hour_of_week, quantile
from autoscaler.simulation.run import SimulatedRun, collect
from autoscaler.simulation.simulation import Simulation, SimulationState
from autoscaler.types.spec import EXTERNAL, STATIC, USE_MAX, Fallback

INVALID: Final = 1
NOT_READ: Final = 2
GOALS: Final = (0.95, 0.99)
_SHARES: Final = (0.5, 0.9, 0.95, 0.99, 1.0)
_MAX_SAMPLES: Final = 2000
_TWO_WEEKS: Final = timedelta(days=13.9)
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def run(options: argparse.Namespace) -> int:
    """Run the drill and print the result; return the exit code."""
    try:
        variants = read_variants(options.files, [])[:1]
        length = parse_length("--length", options.length)
        (simulation,) = make_simulations(options, variants, read_history(options, variants))
        _check(options, simulation, length)
    except ConfigInvalid as error:
        sys.stderr.writelines(f"{message}\n" for message in error.messages)
        return INVALID
    except BackendError as error:
        sys.stderr.write(f"Prometheus cannot be read: {error.message}{f': {error.detail}' if error.detail else ''}\n")
        return NOT_READ
    simulated, results = _drill(simulation, length, options.samples)
    render = _json if options.output == "json" else _lines
    write_output(options.file, render(simulation, simulated, results, length))
    return 0


def _check(options: argparse.Namespace, simulation: Simulation, length: timedelta) -> None:
    scenario = simulation.scenario
    if _first_external(simulation) is None:
        raise ConfigInvalid([Problem("spec.metrics", "no external metric: only external metrics have a fallback")])
    if length.total_seconds() <= effective_after(scenario, _configured(simulation)):
        raise ConfigInvalid([Problem("--length", "no fallback takes effect in such a short outage", options.length)])
    if scenario.end - scenario.start <= length:
        raise ConfigInvalid([Problem("--length", "longer than the history", options.length)])
    if not 1 <= options.samples <= _MAX_SAMPLES:
        raise ConfigInvalid([Problem("--samples", f"must be between 1 and {_MAX_SAMPLES}", options.samples)])


def _first_external(simulation: Simulation) -> int | None:
    return next((index for index, metric in enumerate(simulation.metrics) if metric.type == EXTERNAL), None)


def _configured(simulation: Simulation) -> Fallback | None:
    """Return the fallback of the spec, with its defaults; of several that of the first metric that has one."""
    sources = (metric.external for metric in simulation.metrics if metric.external is not None)
    return next((source.fallback for source in sources if source.fallback is not None), None)


def _drill(simulation: Simulation, length: timedelta, samples: int) -> tuple[SimulatedRun, list[DrillResult]]:
    """Return the run without outages, and the results without fallback, with the configured one, and with others."""
    scenario, configured = simulation.scenario, _configured(simulation)
    start, end = scenario.start.timestamp(), scenario.end.timestamp() - length.total_seconds()
    moments = [start + (end - start) * index / samples for index in range(samples)]
    states: list[SimulationState] = []
    steps = with_progress(simulation.run(), simulation, "simulating without outages")
    run = collect(simulation, with_checkpoints(steps, moments, states))
    needed = needs(
        run, effective_after(scenario, configured), length.total_seconds(), scenario.autoscaler.spec.max_replicas
    )
    counts = sorted({max(quantile(needed, share), 1) for share in _SHARES}) if needed else []
    seconds = None if configured is None else configured.failure_duration_seconds
    others = [Fallback(number, seconds, strategy) for number in counts for strategy in (STATIC, USE_MAX)]
    fallbacks = [None, *([configured] if configured else []), *(each for each in others if each != configured)]
    results = []
    for index, fallback in enumerate(fallbacks, 1):
        show_progress(f"drill {index} of {len(fallbacks)}: {count(len(states), 'outage')}")
        results.append(run_drill(scenario, states, length, fallback))
    show_progress("")
    return run, results


def proposals(results: Sequence[DrillResult]) -> dict[float, DrillResult]:
    """Return for each goal the fallback that reaches it with the fewest replica-hours; of equal ones the first."""
    found = {}
    for goal in GOALS:
        reaching = [one for one in results if one.fallback is not None and one.coverage >= goal]
        if reaching:
            found[goal] = min(reaching, key=lambda one: one.replica_hours)
    return found


def _patch(simulation: Simulation, fallback: Fallback) -> list[dict[str, Any]]:
    """Return the JSON patch that sets a fallback."""
    value = {name: one for name, one in to_builtins(fallback).items() if one is not None}
    indexes = [index for index, metric in enumerate(simulation.metrics) if metric.type == EXTERNAL]
    return [{"op": "add", "path": f"/spec/metrics/{index}/external/fallback", "value": value} for index in indexes]


def _lines(
    simulation: Simulation, run: SimulatedRun, results: Sequence[DrillResult], length: timedelta
) -> Iterator[str]:
    scenario, configured, text = simulation.scenario, _configured(simulation), format_duration(length)
    days = (scenario.end - scenario.start) / timedelta(days=1)
    yield f"{count(results[0].outages, 'outage')} of {text}, begun throughout {days:.1f} days\n\n"
    columns = ("fallback", "covered", "under-provisioned", "missing replicas", "replica-hours")
    yield f"{columns[0]:<24}" + "".join(f"{name:>19}" for name in columns[1:]) + "\n"
    for one in results:
        name = _name(one.fallback) + (
            " (configured)" if one.fallback is not None and one.fallback == configured else ""
        )
        cells = (f"{one.coverage:.1%}", f"{one.under_share:.1%}", f"{one.missing:.2f}", f"{one.replica_hours:.1f}")
        yield f"{name:<24}" + "".join(f"{cell:>19}" for cell in cells) + "\n"
    yield "\n"
    found = proposals(results)
    for goal, one in reversed(found.items()):
        within = (
            f"outages up to {text} begun at any time in {'this day' if round(days) == 1 else f'these {days:.0f} days'}"
        )
        yield f"{_name(one.fallback)} covers {one.coverage:.0%} of {within} (goal {goal:.0%})\n"
    if not found:
        yield f"no fallback covers {GOALS[0]:.0%} of the outages: the target scales to it too slowly\n"
        return
    best = list(found.values())[-1]
    yield "\n# patch.yaml: kubectl patch podautoscaler NAME --type=json --patch-file=patch.yaml\n"
    yield yaml.safe_dump(_patch(simulation, best.fallback or Fallback()), sort_keys=False)
    yield from _grid_lines(simulation, run, length)


def _grid_lines(simulation: Simulation, run: SimulatedRun, length: timedelta) -> Iterator[str]:
    """Yield the needs by hour of the week, if each hour occurs twice."""
    grid = _grid(simulation, run, length)
    if grid is not None:
        yield "\nreplicas that an outage needs, by weekday and hour (UTC) of its start\n"
        yield "     " + "".join(f"{hour:>4}" for hour in range(24)) + "\n"
        for day, row in zip(_DAYS, grid, strict=True):
            yield f"{day:<5}" + "".join(f"{'-' if need is None else need:>4}" for need in row) + "\n"


def _grid(simulation: Simulation, run: SimulatedRun, length: timedelta) -> list[list[int | None]] | None:
    scenario = simulation.scenario
    if scenario.end - scenario.start < _TWO_WEEKS:
        return None
    begin, maximum = effective_after(scenario, _configured(simulation)), scenario.autoscaler.spec.max_replicas
    return needs_by_hour_of_week(run, begin, length.total_seconds(), maximum)


def _json(
    simulation: Simulation, run: SimulatedRun, results: Sequence[DrillResult], length: timedelta
) -> Iterator[str]:
    found = {f"{goal:g}": _patch(simulation, one.fallback or Fallback()) for goal, one in proposals(results).items()}
    view = {
        "length": format_duration(length),
        "results": [{"coverage": one.coverage, **to_builtins(structs.asdict(one))} for one in results],
        "patches": found,
        "needsByHourOfWeek": _grid(simulation, run, length),
    }
    yield f"{json.dumps(view, indent=2)}\n"


def _name(fallback: Fallback | None) -> str:
    return "none" if fallback is None else f"{fallback.replicas} {fallback.strategy or STATIC}"
