"""The timeline of an autoscaler: replicas and metric values over time, packed into bytes to fit 20,000 in memory.

Each decision adds a point. If it equals the two points before except for its time, the last point is moved forward
instead, so that a constant period costs two points. The oldest points are dropped at the size limit.
"""

import math
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, Final, TypeAlias

from adapter.debug.formatting import format_time
from autoscaler.types.decision import Decision
from autoscaler.types.steps import MetricFallbackStep, MetricProposalStep, MetricUnavailableStep

Json: TypeAlias = dict[str, Any]
MetricStep: TypeAlias = MetricProposalStep | MetricUnavailableStep | MetricFallbackStep

_TIME: Final = struct.Struct("<d")
_REPLICAS: Final = struct.Struct("<ii")
_METRIC: Final = struct.Struct("<fffB")


class MetricPointState(IntEnum):
    """The state of a metric at a point."""

    OK = 0
    FAILED = 1
    FALLBACK = 2
    NOT_READ = 3


class Timeline:
    """The points of one autoscaler."""

    __slots__ = ("_point_size", "_points", "metrics")

    def __init__(self) -> None:
        self.metrics: tuple[str, ...] = ()
        self._point_size = _point_size(0)
        self._points = bytearray()

    def __len__(self) -> int:
        return len(self._points) // self._point_size

    def add(self, decision: Decision, max_bytes: int) -> None:
        """Add a point, and drop the oldest points beyond ``max_bytes``."""
        steps = [step for step in decision.steps if isinstance(step, MetricStep)]
        names = tuple(step.metric for step in steps) if steps else self.metrics
        if names != self.metrics:  # the spec was edited: the stored points belong to other metrics
            self.metrics, self._point_size = names, _point_size(len(names))
            self._points.clear()
        point = _TIME.pack(decision.at.timestamp())
        point += _REPLICAS.pack(decision.status.current_replicas, decision.replicas)
        not_read = _METRIC.pack(math.nan, math.nan, math.nan, MetricPointState.NOT_READ)
        point += b"".join(map(_pack_metric, steps)) if steps else not_read * len(names)
        self._append(point)
        while len(self._points) > max(max_bytes, 2 * self._point_size):
            del self._points[: self._point_size]

    def _append(self, point: bytes) -> None:
        size, points = self._point_size, self._points
        if len(points) >= 2 * size:
            last, second_last = points[-size + _TIME.size :], points[-2 * size + _TIME.size : -size]
            if last == second_last == point[_TIME.size :]:
                points[-size:] = point
                return
        points += point

    def columns(self) -> Json:
        """Return the points as columns of equal length; unknown values are null."""
        points = list(self._unpack())
        return {
            "time": [format_time(datetime.fromtimestamp(time, UTC)) for time, *_ in points],
            "current": [current for _, current, _, _ in points],
            "replicas": [replicas for _, _, replicas, _ in points],
            "metrics": [
                {
                    "name": name,
                    "value": [_rounded(metrics[index][0]) for *_, metrics in points],
                    "target": [_rounded(metrics[index][1]) for *_, metrics in points],
                    "proposal": [_rounded(metrics[index][2]) for *_, metrics in points],
                    "state": [MetricPointState(metrics[index][3]).name.lower() for *_, metrics in points],
                }
                for index, name in enumerate(self.metrics)
            ],
        }

    def _unpack(self) -> Iterator[tuple[float, int, int, list[tuple[float, float, float, int]]]]:
        for start in range(0, len(self._points), self._point_size):
            (time,) = _TIME.unpack_from(self._points, start)
            current, replicas = _REPLICAS.unpack_from(self._points, start + _TIME.size)
            first = start + _TIME.size + _REPLICAS.size
            metrics = [_METRIC.unpack_from(self._points, first + _METRIC.size * n) for n in range(len(self.metrics))]
            yield time, current, replicas, metrics


def _point_size(metrics: int) -> int:
    return _TIME.size + _REPLICAS.size + _METRIC.size * metrics


def _pack_metric(step: MetricStep) -> bytes:
    match step:
        case MetricProposalStep(calculation=calculation) if calculation.utilization is not None:
            return _METRIC.pack(calculation.utilization, calculation.target, step.replicas, MetricPointState.OK)
        case MetricProposalStep(calculation=calculation):
            return _METRIC.pack(calculation.usage / 1000, calculation.target / 1000, step.replicas, MetricPointState.OK)
        case MetricFallbackStep():
            return _METRIC.pack(math.nan, math.nan, step.replicas, MetricPointState.FALLBACK)
        case MetricUnavailableStep():
            return _METRIC.pack(math.nan, math.nan, math.nan, MetricPointState.FAILED)


def _rounded(value: float) -> float | None:
    """Round to six digits, the precision of a 32-bit float: 0.1 must not become 0.10000000149."""
    if math.isnan(value):
        return None
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() else rounded
