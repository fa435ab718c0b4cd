"""The result of a simulation: one value per decision in columns, and the steps of the decisions that changed something.

A month of decisions with all their records would need a gigabyte; the columns of it need some megabytes.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from math import nan
from typing import Final

from autoscaler.simulation.simulation import SimulatedStep, Simulation
from autoscaler.types.limiting_factor import LimitingFactor
from autoscaler.types.steps import MetricFallbackStep, MetricUnavailableStep, Step

MAX_EXPLAINED: Final = 2000
"""Maximum number of decisions whose steps are kept."""

FACTORS: Final = tuple(LimitingFactor)
_FACTOR_INDEX: Final = {factor: index for index, factor in enumerate(FACTORS)}


@dataclass(slots=True)
class SimulatedRun:
    """The decisions of one simulation. Columns have one entry per decision; NaN: unknown."""

    end: float
    """In seconds since the epoch; the last decision applies until then."""

    times: "array[float]" = field(default_factory=lambda: array("d"))
    replicas: "array[int]" = field(default_factory=lambda: array("l"))
    """The replicas of the target after the decision."""

    ready: "array[int]" = field(default_factory=lambda: array("l"))
    """The ready replicas after the decision."""

    demand: "array[float]" = field(default_factory=lambda: array("d"))
    values: "list[array[float]]" = field(default_factory=list)
    """One column per metric: its true value."""

    factors: bytearray = field(default_factory=bytearray)
    """The limiting factors, as indexes of ``FACTORS``."""

    fallback: bytearray = field(default_factory=bytearray)
    """1 if a fallback was active."""

    unavailable: bytearray = field(default_factory=bytearray)
    """1 if a metric was unavailable and its fallback not active."""

    rescales: list[tuple[int, int, int]] = field(default_factory=list)
    """Index of the decision, replicas before and after it."""

    explained: dict[int, tuple[datetime, tuple[Step, ...]]] = field(default_factory=dict)
    """Time and steps of decisions that differ from the previous one in replicas or limiting factor, by index."""

    omitted: int = 0
    """Number of such decisions that are not kept."""

    def add(self, step: SimulatedStep) -> None:
        """Append a decision."""
        decision, demand = step.decision, step.demand
        factor = _FACTOR_INDEX[decision.limiting_factor]
        kinds = {type(each) for each in decision.steps}
        is_changed = decision.scale_to is not None or not self.factors or self.factors[-1] != factor
        if is_changed and len(self.explained) < MAX_EXPLAINED:
            self.explained[len(self.times)] = (decision.at, decision.steps)
        elif is_changed:
            self.omitted += 1
        if decision.scale_to is not None:
            self.rescales.append((len(self.times), decision.status.current_replicas, decision.scale_to))
        self.times.append(decision.at.timestamp())
        self.replicas.append(len(step.state.replicas))
        self.ready.append(step.ready)
        self.demand.append(nan if demand is None else demand)
        for column, milli in zip(self.values, step.values, strict=True):
            column.append(nan if milli is None else milli / 1000)
        self.factors.append(factor)
        self.fallback.append(MetricFallbackStep in kinds)
        self.unavailable.append(MetricUnavailableStep in kinds)


def collect(simulation: Simulation, steps: Iterable[SimulatedStep] | None = None) -> SimulatedRun:
    """Run a simulation, or take these steps of it, and return their columns."""
    run = SimulatedRun(simulation.scenario.end.timestamp(), values=[array("d") for _ in simulation.metrics])
    for step in simulation.run() if steps is None else steps:
        run.add(step)
    return run
