"""Outage drill: replays outages that begin at moments of the history, with several fallbacks.

The run without outages is simulated once. Each outage continues from its state at that moment, which is exact, because
a state holds everything that the next decisions depend on.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from autoscaler.defaults import FAILURE_DURATION_SECONDS
from autoscaler.simulation.metric_history import Outage
from autoscaler.simulation.scenario import Scenario
from autoscaler.simulation.simulation import SimulatedStep, Simulation, SimulationState
from autoscaler.types.record import Record
from autoscaler.types.spec import EXTERNAL, Fallback, Metric, Spec

_HOUR: Final = 3600.0


class DrillResult(Record):
    """The outages of one drill with one fallback."""

    fallback: Fallback | None
    """None: no fallback."""

    outages: int
    covered: int
    """Outages in which the ready replicas always meet the demand once the fallback can have taken effect."""

    under_share: float
    """Under-provisioned share of the time of all outages."""

    missing: float
    """Average number of missing replicas during the outages."""

    replica_hours: float
    """Average of one outage."""

    @property
    def coverage(self) -> float:
        return self.covered / self.outages


def with_fallback(spec: Spec, fallback: Fallback | None) -> Spec:
    """Return the spec with this fallback, or with none, for all its external metrics."""
    metrics = tuple(_with_fallback(metric, fallback) for metric in spec.metrics or ())
    return replace(spec, metrics=metrics)


def _with_fallback(metric: Metric, fallback: Fallback | None) -> Metric:
    if metric.type != EXTERNAL or metric.external is None:
        return metric
    return replace(metric, external=replace(metric.external, fallback=fallback))


def effective_after(scenario: Scenario, fallback: Fallback | None) -> float:
    """Return the seconds from the start of an outage until a fallback can have taken effect.

    They are its failure duration, the start of the pods, and two sync periods: the outage can begin right after a read,
    and the supply is counted at decisions.
    """
    seconds = fallback.failure_duration_seconds if fallback is not None else None
    duration = FAILURE_DURATION_SECONDS if seconds is None else seconds
    return duration + (scenario.startup + 2 * scenario.settings.sync_period).total_seconds()


def with_checkpoints(
    steps: Iterable[SimulatedStep], moments: Sequence[float], found: list[SimulationState]
) -> Iterator[SimulatedStep]:
    """Yield the steps, and add to ``found`` the state before the first decision at or after each of the moments.

    The moments are in ascending order; those after the last decision are left out.
    """
    waiting = list(reversed(moments))
    for step in steps:
        while waiting and step.state.now.timestamp() >= waiting[-1]:
            waiting.pop()
            found.append(step.state)
        yield step


def run_drill(
    scenario: Scenario, states: Sequence[SimulationState], length: timedelta, fallback: Fallback | None
) -> DrillResult:
    """Replay an outage from each of the states, of which there must be one at least."""
    spec = with_fallback(scenario.autoscaler.spec, fallback)
    simulation = Simulation(replace(scenario, autoscaler=replace(scenario.autoscaler, spec=spec)))
    planned = simulation.first_state().autoscaler.spec
    begin, maximum = effective_after(scenario, fallback), spec.max_replicas
    covered = 0
    under = missing = replicas = 0.0
    for state in states:
        start = state.now.timestamp()
        end = start + length.total_seconds()
        first = replace(state, autoscaler=replace(state.autoscaler, spec=planned))
        is_covered = True
        for step in simulation.run_from(first, state.now + length, (Outage(start, end),)):
            time = step.decision.at.timestamp()
            held = min(step.state.now.timestamp(), end) - time
            shortage = max(min(step.demand or 0, maximum) - step.ready, 0)
            is_covered = is_covered and not (shortage and time - start >= begin)
            under += held * (shortage > 0)
            missing += held * shortage
            replicas += held * len(step.state.replicas)
        covered += is_covered
    total = length.total_seconds() * len(states)
    return DrillResult(fallback, len(states), covered, under / total, missing / total, replicas / len(states) / _HOUR)
