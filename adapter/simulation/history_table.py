"""The recorded values of several metrics over time, and their assignment to the metrics of a spec. Pure."""

import itertools
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from adapter.decoding.problem import ConfigInvalid, Problem
from autoscaler.simulation.metric_history import MetricHistory
from autoscaler.types.record import Record
from autoscaler.types.spec import EXTERNAL, OBJECT, Metric, MetricTarget

GAP_STEPS: Final = 3
"""A distance between samples of more than this many times the median is a gap."""


class HistoryTable(Record):
    """Columns of values at increasing times."""

    times: tuple[float, ...]
    columns: Mapping[str, tuple[int | None, ...]]
    """The values in thousandths by name of the metric; None: the metric had no value."""

    max_age: float
    """The distance in seconds between samples above which there is a gap."""

    current: tuple[int, ...] | None = None
    """With a decision history: the replicas at each time. Values of metrics with an AverageValue target are averages
    over them."""


def default_max_age(times: Sequence[float]) -> float:
    """Return the distance above which there is a gap: three times the median distance, and at least five minutes.

    Five minutes is the age up to which Prometheus and the rules use a sample.
    """
    distances = [after - before for before, after in itertools.pairwise(times)]
    return max(300.0, GAP_STEPS * median(distances)) if distances else 300.0


def histories_for(metrics: Sequence[Metric], table: HistoryTable) -> tuple[MetricHistory, ...]:
    """Return the history of each metric; raise ``ConfigInvalid`` if the table lacks one."""
    histories, problems = [], []
    is_only = len(metrics) == len(table.columns) == 1
    for index, metric in enumerate(metrics):
        names = _names(metric)
        column = next((name for name in names if name in table.columns), None)
        if column is None and is_only:
            column = next(iter(table.columns))
        if column is None:
            known = ", ".join(sorted(table.columns)) or "none"
            problems.append(Problem(f"spec.metrics[{index}]", f"the history has no column {names[0]}; it has: {known}"))
        elif table.current is not None and metric.type not in (EXTERNAL, OBJECT):
            message = f"a decision history has no totals of {metric.type} metrics: use a CSV file with timestamp,value"
            problems.append(Problem(f"spec.metrics[{index}]", message))
        else:
            values = _totals(table.columns[column], table.current, _target(metric))
            histories.append(MetricHistory(table.times, values, table.max_age))
    if problems:
        raise ConfigInvalid(problems)
    return tuple(histories)


def _names(metric: Metric) -> tuple[str, ...]:
    """Return the names that the column of a metric may have."""
    if source := metric.external or metric.object or metric.pods:
        return tuple(dict.fromkeys((str(source.metric), source.metric.name)))
    resource = metric.resource or metric.container_resource
    return (resource.name if resource else metric.type,)


def _target(metric: Metric) -> MetricTarget | None:
    source = metric.external or metric.object
    return source.target if source is not None else None


def _totals(
    values: tuple[int | None, ...], current: tuple[int, ...] | None, target: MetricTarget | None
) -> tuple[int | None, ...]:
    """Return totals: a decision history has the average over the replicas for an AverageValue target."""
    if current is None or target is None or target.average_value is None:
        return values
    pairs = zip(values, current, strict=True)
    return tuple(None if milli is None or not replicas else milli * replicas for milli, replicas in pairs)
