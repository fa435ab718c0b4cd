"""The backlog of the model ``queue``."""

import itertools

from autoscaler.simulation.metric_history import MetricHistory
from autoscaler.simulation.replicas import ReadyTimes, count_ready


def backlog_at(
    backlog: float, start: float, end: float, arrivals: MetricHistory, replicas: ReadyTimes, service_rate: float
) -> float:
    """Return the backlog at ``end``, if it was ``backlog`` at ``start``.

    Arrivals and ready replicas are constant between the moments at which one of them changes, so the result is exact.
    In a gap of the history the arrivals are unknown and taken for zero.
    """
    changes = {*arrivals.changes(start, end), *(time for time in replicas if start < time < end)}
    moments = [start, *sorted(changes), end]
    for since, until in itertools.pairwise(moments):
        rate = (arrivals.at(since) or 0) / 1000 - service_rate * count_ready(replicas, since)
        backlog = max(backlog + rate * (until - since), 0.0)
    return backlog
