"""The timeline of an autoscaler: replicas and metric values over time, packed into bytes to fit 20,000 in memory.

Each decision adds a point. If it equals the two points before except for its time, the last point is moved forward
instead, so that a constant period costs two points. The oldest points are dropped at the size limit.
"""

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from enum import IntEnum
from functools import cache
from itertools import chain
from struct import Struct
from typing import Final, TypeAlias, TypeVar

from adapter.debug.formatting import Json, format_time
from adapter.debug.recorded_load import RecordedLoad, RecordedPoint, utilization_total
from autoscaler.types.decision import Decision
from autoscaler.types.metric_result import Calculation
from autoscaler.types.steps import MetricFallbackStep, MetricProposalStep, MetricUnavailableStep
from autoscaler.values.arithmetic import MIN_INT64

T = TypeVar("T")
MetricStep: TypeAlias = MetricProposalStep | MetricUnavailableStep | MetricFallbackStep
MetricPoint: TypeAlias = tuple[float, float, float, float, int]
"""Value, target value, proposed replicas, total and state of a metric; NaN for unknown numbers.

The total is the value of the whole workload, for replays, because the average per pod is rounded;
``recorded_load`` defines that of a utilization."""

_METRIC_STEPS: Final = (MetricProposalStep, MetricUnavailableStep, MetricFallbackStep)
_TIME_SIZE: Final = 8
_METRIC_COLUMNS: Final = 5
_SHOWN: Final = ("value", "target", "proposal")
"""The columns of a metric that the page shows, which are the first ones."""


class MetricPointState(IntEnum):
    """The state of a metric at a point."""

    OK = 0
    FAILED = 1
    FALLBACK = 2
    NOT_READ = 3


_NOT_READ: Final[MetricPoint] = (math.nan, math.nan, math.nan, math.nan, MetricPointState.NOT_READ)


class Timeline:
    """The points of one autoscaler."""

    __slots__ = ("_format", "_points", "metrics")

    def __init__(self) -> None:
        self.metrics: tuple[str, ...] = ()
        self._format = _point_format(0)
        self._points = bytearray()

    def __len__(self) -> int:
        return len(self._points) // self._format.size

    def add(self, decision: Decision, max_bytes: int) -> None:
        """Add a point, and drop the oldest points beyond ``max_bytes``."""
        steps = [step for step in decision.steps if isinstance(step, _METRIC_STEPS)]
        names = tuple(step.metric for step in steps) if steps else self.metrics
        if names != self.metrics:  # the spec was edited: the stored points belong to other metrics
            self.metrics, self._format = names, _point_format(len(names))
            self._points.clear()
        metrics = chain.from_iterable(map(_metric_point, steps) if steps else [_NOT_READ] * len(names))
        time, current = decision.at.timestamp(), decision.status.current_replicas
        self._append(self._format.pack(time, current, decision.replicas, *metrics))
        while len(self._points) > max(max_bytes, 2 * self._format.size):
            del self._points[: self._format.size]

    def _append(self, point: bytes) -> None:
        size, points = len(point), self._points
        if len(points) >= 2 * size:
            last, second_last = points[-size + _TIME_SIZE :], points[-2 * size + _TIME_SIZE : -size]
            if last == second_last == point[_TIME_SIZE:]:
                points[-size:] = point
                return
        points += point

    def copy(self) -> "Timeline":
        """Return a copy, which another thread can read while decisions are added to this one."""
        copied = Timeline()
        copied.metrics, copied._format, copied._points = self.metrics, self._format, self._points.copy()
        return copied

    def columns(self) -> Json:
        """Return the points, of which there must be at least one, as columns of equal length; null is unknown."""
        times, current, replicas, *metrics = zip(*self._format.iter_unpack(self._points), strict=True)
        return {
            "time": [format_time(datetime.fromtimestamp(time, UTC)) for time in times],
            "current": list(current),
            "replicas": list(replicas),
            "metrics": [
                {
                    "name": name,
                    **{key: [*map(_rounded, column)] for key, column in zip(_SHOWN, columns, strict=False)},
                    "state": [MetricPointState(state).name.lower() for state in columns[-1]],
                }
                for name, columns in zip(self.metrics, _by_metric(metrics), strict=True)
            ],
        }

    def load(self, end: float) -> RecordedLoad:
        """Return the points, of which there must be at least one, as the load until a time."""
        points = [*self._format.iter_unpack(self._points)]
        # A decision that was not applied, such as in a dry run, changes no replicas: the next point has what they were.
        following = [*(point[1] for point in points[1:]), points[-1][1]]
        loaded: list[RecordedPoint] = []
        last: tuple[int | None, ...] = (None,) * len(self.metrics)
        for (time, current, _, *metrics), replicas in zip(points, following, strict=True):
            columns = [*_by_metric(metrics)]
            last = tuple(_total_milli(before, *each[3:]) for before, each in zip(last, columns, strict=True))
            is_fallback = any(state == MetricPointState.FALLBACK for *_, state in columns)
            loaded.append(RecordedPoint(time, current, replicas, last, is_fallback))
        return RecordedLoad(self.metrics, tuple(loaded), end)


def _by_metric(columns: Iterable[T]) -> Iterator[tuple[T, ...]]:
    """Yield the columns of each metric."""
    each = iter(columns)
    return zip(*[each] * _METRIC_COLUMNS, strict=True)


@cache
def _point_format(metrics: int) -> Struct:
    """Return the format of a point: time, current replicas, replicas, and a ``MetricPoint`` for each metric."""
    return Struct("<dii" + "ffffB" * metrics)


def _metric_point(step: MetricStep) -> MetricPoint:
    if isinstance(step, MetricProposalStep):
        calculation = step.calculation
        if calculation.utilization is not None:
            total = utilization_total(calculation.utilization, _pods(calculation)) / 1000
            return calculation.utilization, calculation.target, step.replicas, total, MetricPointState.OK
        # Upstream's average over 0 pods is not a value.
        value = math.nan if calculation.usage == MIN_INT64 else calculation.usage / 1000
        total = value * _pods(calculation) if calculation.total is None else calculation.total / 1000
        return value, calculation.target / 1000, step.replicas, total, MetricPointState.OK
    if isinstance(step, MetricFallbackStep):
        return math.nan, math.nan, step.replicas, math.nan, MetricPointState.FALLBACK
    return math.nan, math.nan, math.nan, math.nan, MetricPointState.FAILED


def _pods(calculation: Calculation) -> int:
    """Return the number of pods over which the usage is an average; 1 for a value of the whole workload."""
    return 1 if calculation.pods is None else calculation.pods.ready


def _total_milli(before: int | None, total: float, state: int) -> int | None:
    """Return the total of a point in thousandths; the one before it if the metric was not read."""
    if state == MetricPointState.NOT_READ:
        return before
    return None if math.isnan(total) else round(float(f"{total:.7g}") * 1000)


def _rounded(value: float) -> float | None:
    """Round to six digits, the precision of a 32-bit float: 0.1 must not become 0.10000000149."""
    if math.isnan(value):
        return None
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() else rounded
