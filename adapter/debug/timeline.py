"""The timeline of an autoscaler: replicas and metric values over time, packed into bytes to fit 20,000 in memory.

Each decision adds a point. If it equals the two points before except for its time, the last point is moved forward
instead, so that a constant period costs two points. The oldest points are dropped at the size limit.
"""

import math
from datetime import UTC, datetime
from enum import IntEnum
from functools import cache
from itertools import chain
from struct import Struct
from typing import Final, TypeAlias

from adapter.debug.formatting import Json, format_time
from autoscaler.types.decision import Decision
from autoscaler.types.steps import MetricFallbackStep, MetricProposalStep, MetricUnavailableStep

MetricStep: TypeAlias = MetricProposalStep | MetricUnavailableStep | MetricFallbackStep
MetricPoint: TypeAlias = tuple[float, float, float, int]
"""Value, target value, proposed replicas, and state of a metric; NaN for unknown numbers."""

_METRIC_STEPS: Final = (MetricProposalStep, MetricUnavailableStep, MetricFallbackStep)
_TIME_SIZE: Final = 8


class MetricPointState(IntEnum):
    """The state of a metric at a point."""

    OK = 0
    FAILED = 1
    FALLBACK = 2
    NOT_READ = 3


_NOT_READ: Final[MetricPoint] = (math.nan, math.nan, math.nan, MetricPointState.NOT_READ)


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

    def columns(self) -> Json:
        """Return the points, of which there must be at least one, as columns of equal length; null is unknown."""
        times, current, replicas, *metrics = zip(*self._format.iter_unpack(self._points), strict=True)
        columns = iter(metrics)
        return {
            "time": [format_time(datetime.fromtimestamp(time, UTC)) for time in times],
            "current": list(current),
            "replicas": list(replicas),
            "metrics": [
                {
                    "name": name,
                    **{key: [*map(_rounded, next(columns))] for key in ("value", "target", "proposal")},
                    "state": [MetricPointState(state).name.lower() for state in next(columns)],
                }
                for name in self.metrics
            ],
        }


@cache
def _point_format(metrics: int) -> Struct:
    """Return the format of a point: time, current replicas, replicas, and a ``MetricPoint`` for each metric."""
    return Struct("<dii" + "fffB" * metrics)


def _metric_point(step: MetricStep) -> MetricPoint:
    if isinstance(step, MetricProposalStep):
        calculation = step.calculation
        if calculation.utilization is not None:
            return calculation.utilization, calculation.target, step.replicas, MetricPointState.OK
        return calculation.usage / 1000, calculation.target / 1000, step.replicas, MetricPointState.OK
    if isinstance(step, MetricFallbackStep):
        return math.nan, math.nan, step.replicas, MetricPointState.FALLBACK
    return math.nan, math.nan, math.nan, MetricPointState.FAILED


def _rounded(value: float) -> float | None:
    """Round to six digits, the precision of a 32-bit float: 0.1 must not become 0.10000000149."""
    if math.isnan(value):
        return None
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() else rounded
