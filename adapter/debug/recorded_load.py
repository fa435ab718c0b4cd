"""The load and the replicas of an autoscaler as its decisions recorded them, as the input of a replay. Pure."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from adapter.decoding.problem import ConfigInvalid, Problem
from autoscaler.algorithm.propose import name_of
from autoscaler.simulation.metric_history import MetricHistory
from autoscaler.types.spec import Metric

MIN_GAP: Final = timedelta(minutes=5)
"""A shorter distance between two different points of a timeline is not a gap."""

_PERCENT_MILLI: Final = 10
"""Thousandths of a request of 1 that are one percent of it."""


class RecordedPoint(NamedTuple):
    """One point of a timeline."""

    time: float
    current: int
    """The replicas of the target when the decision was made."""

    replicas: int
    """The replicas of the target until the next decision."""

    totals: tuple[int | None, ...]
    """Of each metric, in thousandths: the value of the whole workload. Of utilizations: the sum over the pods, in
    thousandths of a request of 1. None: the metric could not be read."""

    fallback: bool = False
    """Whether a fallback was active."""


class RecordedLoad(NamedTuple):
    """The points of a period in the order of their times. A point applies until the next one."""

    metrics: tuple[str, ...]
    points: tuple[RecordedPoint, ...]
    end: float
    """When the last point ends to apply."""

    def at(self, time: float) -> RecordedPoint:
        """Return the last point at or before a time; before the first one, the first."""
        return self.points[max(bisect_right(self.points, time, key=lambda point: point.time) - 1, 0)]

    def with_gaps(self, gaps: Sequence[tuple[float, float]]) -> "RecordedLoad":
        """Return the load with no values in these periods."""
        start, unknown = self.points[0].time, (None,) * len(self.metrics)
        edges = {time for gap in gaps for time in gap if start <= time < self.end}
        points = []
        for time in sorted({point.time for point in self.points} | edges):
            is_hidden = any(first <= time < last for first, last in gaps)
            known = self.at(time)
            shown = RecordedPoint(time, known.current, known.replicas, unknown) if is_hidden else known
            points.append(shown._replace(time=time))
        return self._replace(points=tuple(points))

    def without_empty_start(self) -> "RecordedLoad":
        """Return the load from the first point at which the target had replicas; raise ``ConfigInvalid`` without one.

        A replay begins without a status, so ``decide`` would take a target of 0 replicas for one that a user disabled.
        """
        for index, point in enumerate(self.points):
            if point.current > 0:
                return self._replace(points=self.points[index:])
        raise ConfigInvalid([Problem("", "there is nothing to replay: the target had no replicas in this period")])


def points_gaps(points: Sequence[RecordedPoint], sync_period: timedelta) -> list[tuple[float, float]]:
    """Return the periods without decisions: a timeline leaves out only points that are equal to their neighbours."""
    limit = max(MIN_GAP, 3 * sync_period).total_seconds()
    return [
        (before.time + limit, after.time)
        for before, after in pairwise(points)
        if before[1:] != after[1:] and after.time - before.time > limit
    ]


def histories_of(
    load: RecordedLoad, recorded: Sequence[Metric], metrics: Sequence[Metric]
) -> tuple[MetricHistory, ...]:
    """Return the history of each metric of an edited spec; raise ``ConfigInvalid`` for those that were not recorded.

    ``recorded`` are the metrics of the spec that was in force: they determine the unit of the recorded values.
    """
    times = tuple(point.time for point in load.points)
    totals = zip(*(point.totals for point in load.points), strict=True)
    columns = dict(zip(_numbered(load.metrics), totals, strict=True))
    units = dict(zip(_numbered(map(name_of, recorded)), map(_is_utilization, recorded), strict=True))
    found, problems = [], []
    for index, (metric, key) in enumerate(zip(metrics, _numbered(map(name_of, metrics)), strict=True)):
        if key not in columns:
            known = ", ".join(sorted(set(load.metrics))) or "none"
            message = f"no values of {key[0]} were recorded in this period; recorded: {known}"
            problems.append(Problem(f"spec.metrics[{index}]", message))
        elif units.get(key, False) != _is_utilization(metric):
            message = "utilizations and values cannot be converted: the requests of the pods are not recorded"
            problems.append(Problem(f"spec.metrics[{index}]", message))
        else:
            found.append(MetricHistory(times, columns[key], float("inf")))
    if problems:
        raise ConfigInvalid(problems)
    return tuple(found)


def utilization_total(percent: int, pods: int) -> int:
    """Return the sum of a utilization over the pods, in thousandths of a request of 1."""
    return percent * pods * _PERCENT_MILLI


def _numbered(names: Iterable[str]) -> list[tuple[str, int]]:
    """Return each name with the number of the same names before it: a spec can have several metrics of one name."""
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        numbered.append((name, seen[name]))
        seen[name] += 1
    return numbered


def _is_utilization(metric: Metric) -> bool:
    source = metric.resource or metric.container_resource
    return source is not None and source.target.average_utilization is not None
