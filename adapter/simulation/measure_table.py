"""The measures of several runs as a table of text. Pure."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from autoscaler.simulation.measures import Measures, measure
from autoscaler.simulation.run import SimulatedRun
from autoscaler.simulation.scenario import WorkloadModel
from autoscaler.simulation.simulation import Simulation

MEASURES: Final = (
    ("replica_hours", "replica-hours", "{:,.1f}"),
    ("under_accuracy", "missing replicas, average", "{:.3f}"),
    ("over_accuracy", "surplus replicas, average", "{:.3f}"),
    ("under_time_share", "under-provisioned time", "{:.2%}"),
    ("over_time_share", "over-provisioned time", "{:.2%}"),
    ("longest_under_seconds", "longest under-provisioned", "duration"),
    ("rescales", "rescales", "{:,}"),
    ("direction_changes", "direction changes", "{:,}"),
    ("jitter_per_hour", "jitter per hour", "{:+.2f}"),
    ("catch_up_seconds", "catch-up after a step, median", "duration"),
    ("catch_up_max_seconds", "catch-up after a step, longest", "duration"),
    ("fallback_seconds", "time in fallback", "duration"),
    ("unknown_seconds", "time without known demand", "duration"),
)
"""Field, label and format of each measure."""

_OF_QUEUE: Final = (("peak_value", "peak backlog", "{:,.0f}"), ("p99_value", "p99 backlog", "{:,.0f}"))


class MeasureRow(NamedTuple):
    """One row of the table of measures."""

    label: str
    values: tuple[str, ...]
    """As text, one for each variant."""


def _measures(model: WorkloadModel) -> tuple[tuple[str, str, str], ...]:
    return (*MEASURES, *_OF_QUEUE) if model is WorkloadModel.QUEUE else MEASURES


def _text(measures: Measures, field: str, layout: str) -> str:
    value = getattr(measures, field)
    if value is None:
        return "-"
    return str(timedelta(seconds=round(value))) if layout == "duration" else layout.format(value)


def measure_rows(simulations: Sequence[Simulation], runs: Sequence[SimulatedRun]) -> list[MeasureRow]:
    """Return the table of measures as text: one row per measure, one value per variant."""
    found = [measure(run) for run in runs]
    return [
        MeasureRow(label, tuple(_text(one, field, layout) for one in found))
        for field, label, layout in _measures(simulations[0].scenario.model)
    ]
