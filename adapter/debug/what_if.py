"""A replay of recorded load with an edited spec, compared with the replicas as they were. Pure.

The replay is a simulation (``autoscaler.simulation``), so nothing in the cluster can change. ``check`` is called before
each decision; it raises to end a replay that takes too long.
"""

from array import array
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import nan
from typing import Any, Final, NamedTuple

import yaml

from adapter.debug.formatting import Json
from adapter.debug.recorded_load import RecordedLoad, histories_of
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.simulation.measure_table import measure_rows
from adapter.simulation.report_view import report_view
from autoscaler.defaults import with_defaults
from autoscaler.settings import ControllerOptions
from autoscaler.simulation.run import FACTORS, SimulatedRun, collect
from autoscaler.simulation.scenario import Scenario, WorkloadModel
from autoscaler.simulation.simulation import InvalidScenario, SimulatedStep, Simulation
from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.limiting_factor import LimitingFactor
from autoscaler.types.spec import CONTAINER_RESOURCE, RESOURCE, Metric, Spec
from autoscaler.values.quantity import Quantity
from autoscaler.wire import decode_spec, encode

MAX_DECISIONS: Final = 50_000
"""A week at a sync period of 15 seconds has 40,320 decisions."""

MAX_REPLICAS: Final = 5_000
"""Each replica of a replay needs memory of the service."""

NAMES: Final = ("as it was", "edited spec")


class ReplayInput(NamedTuple):
    """Everything that a replay needs."""

    autoscaler: Autoscaler
    """With the spec that was in force."""

    load: RecordedLoad
    options: ControllerOptions
    startup: timedelta = timedelta(0)
    """The time from the creation of a pod until it is ready."""


def spec_yaml(spec: Spec) -> str:
    """Return a spec as YAML, without the defaults that the API server has not stored."""
    text: str = yaml.safe_dump(encode(spec), sort_keys=False, allow_unicode=True)
    return text


def replay(content: Any, source: ReplayInput, check: Callable[[], None]) -> Json:  # noqa: ANN401 - YAML
    """Return the view of a replay with a valid spec; raise ``ConfigInvalid`` if it cannot be replayed."""
    load = source.load.without_empty_start()
    current = with_defaults(source.autoscaler.spec)
    edited = decode_spec(content)
    if edited.max_replicas > MAX_REPLICAS:
        message = f"at most {MAX_REPLICAS:,} replicas can be replayed"
        raise ConfigInvalid([Problem("spec.maxReplicas", message, edited.max_replicas)])
    simulations = [_simulation(spec, current, load, source) for spec in (source.autoscaler.spec, edited)]
    run = collect(simulations[1], _checked(simulations[1].run(), check))
    runs = [_recorded_run(simulations[0], load, run, check), run]
    return report_view(NAMES, simulations, runs, measure_rows(simulations, runs))


def _checked(steps: Iterator[SimulatedStep], check: Callable[[], None]) -> Iterator[SimulatedStep]:
    for step in steps:
        check()
        yield step


def _simulation(spec: Spec, recorded: Spec, load: RecordedLoad, source: ReplayInput) -> Simulation:
    """Return the simulation of a spec; raise ``ConfigInvalid`` if the recorded load does not suffice for it."""
    metrics = with_defaults(spec).metrics or ()
    settings, metadata = source.options.settings, source.autoscaler.metadata
    start, end = (datetime.fromtimestamp(time, UTC) for time in (load.points[0].time, load.end))
    if (end - start) / settings.sync_period > MAX_DECISIONS:
        raise ConfigInvalid([Problem("", f"more than {MAX_DECISIONS:,} decisions: choose a shorter period")])
    scenario = Scenario(
        # Annotations and status are left out: the replay begins with a new autoscaler that is not paused.
        autoscaler=Autoscaler(Metadata(metadata.name, metadata.namespace), spec),
        histories=histories_of(load, recorded.metrics or (), metrics),
        start=start,
        end=end,
        replicas=load.points[0].current,
        model=WorkloadModel.MIXED,
        startup=source.startup,
        requests=_requests(metrics),
        settings=settings,
        gates=source.options.gates,
    )
    try:
        return Simulation(scenario)
    except InvalidScenario as error:
        raise ConfigInvalid([Problem("spec", problem) for problem in error.args]) from None


def _requests(metrics: tuple[Metric, ...]) -> dict[str, Quantity]:
    """Return requests of 1 for all resources, which are the unit of recorded utilizations."""
    sources = [one.resource or one.container_resource for one in metrics if one.type in (RESOURCE, CONTAINER_RESOURCE)]
    return {source.name: Quantity.parse("1") for source in sources if source is not None}


def _recorded_run(
    simulation: Simulation, load: RecordedLoad, replayed: SimulatedRun, check: Callable[[], None]
) -> SimulatedRun:
    """Return the replicas as they were, at the times of the replayed decisions, with the demand of the old spec."""
    histories = simulation.scenario.histories
    run = SimulatedRun(replayed.end, values=[array("d") for _ in histories])
    factor = FACTORS.index(LimitingFactor.NONE)
    for time in replayed.times:
        check()
        point = load.at(time)
        demand = simulation.demand_at(datetime.fromtimestamp(time, UTC), point.current)
        run.times.append(time)
        run.replicas.append(point.replicas)
        run.ready.append(point.replicas)
        run.demand.append(nan if demand is None else demand)
        for column, history in zip(run.values, histories, strict=True):
            milli = history.at(time)
            column.append(nan if milli is None else milli / 1000)
        run.factors.append(factor)
        run.fallback.append(point.fallback)
        run.unavailable.append(None in point.totals and not point.fallback)
    for index, (before, after) in enumerate(pairwise(run.replicas), 1):
        if before != after:
            run.rescales.append((index, before, after))
    return run
