"""What an autoscaler went through lately: a strip of packed points, so that twenty thousand of them fit in memory.

A point is taken at each decision. Where nothing but the time has changed since the two before, the last is moved
forward instead: a quiet day costs two points. The oldest are dropped when there is no more room.
"""

import math
import struct
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, Final, TypeAlias

from autoscaler.types.decision import Decision
from autoscaler.types.steps import MetricAnswered, MetricFailed, MetricFellBack

Json: TypeAlias = dict[str, Any]
MetricStep: TypeAlias = MetricAnswered | MetricFailed | MetricFellBack

_TIME: Final = struct.Struct("<d")
_SIZES: Final = struct.Struct("<ii")
_METRIC: Final = struct.Struct("<fffB")
_NOTHING: Final = math.nan


class Read(IntEnum):
    """How a metric fared at a point."""

    WELL = 0
    FAILED = 1
    FELL_BACK = 2
    NOT_ASKED = 3


class Timeline:
    """The strip of one autoscaler."""

    __slots__ = ("_points", "_size", "metrics")

    def __init__(self) -> None:
        self.metrics: tuple[str, ...] = ()
        self._size = _size(0)
        self._points = bytearray()

    def __len__(self) -> int:
        return len(self._points) // self._size

    @property
    def weight(self) -> int:
        """How many bytes the points take."""
        return len(self._points)

    def add(self, decision: Decision, room: int) -> None:
        """Take a point, and drop the oldest while they take more than ``room`` bytes."""
        seen = [step for step in decision.working if isinstance(step, MetricStep)]
        names = tuple(step.metric for step in seen) if seen else self.metrics
        if names != self.metrics:  # the spec was edited: the old points are of other metrics
            self.metrics, self._size = names, _size(len(names))
            self._points.clear()
        point = _packed(decision, seen, len(names))
        self._append(point)
        while len(self._points) > max(room, 2 * self._size):
            del self._points[: self._size]

    def _append(self, point: bytes) -> None:
        """Add a point, or move the last one forward where it and the one before already say the same."""
        size, kept, time = self._size, self._points, _TIME.size
        if len(kept) >= 2 * size:
            last, before = kept[-size + time :], kept[-2 * size + time : -size]
            if last == before == point[time:]:
                kept[-size:] = point
                return
        kept += point

    def columns(self) -> Json:
        """Give the points as columns, each as long as there are points; what was not known is null."""
        points = list(self._unpacked())
        return {
            "at": [datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:23] + "Z" for at, *_ in points],
            "current": [current for _, current, _, _ in points],
            "replicas": [replicas for _, _, replicas, _ in points],
            "metrics": [
                {
                    "name": name,
                    "value": [_shown(metrics[index][0]) for *_, metrics in points],
                    "target": [_shown(metrics[index][1]) for *_, metrics in points],
                    "proposal": [_shown(metrics[index][2]) for *_, metrics in points],
                    "read": [Read(metrics[index][3]).name.lower() for *_, metrics in points],
                }
                for index, name in enumerate(self.metrics)
            ],
        }

    def _unpacked(self) -> Iterator[tuple[float, int, int, list[tuple[float, float, float, int]]]]:
        for start in range(0, len(self._points), self._size):
            (at,) = _TIME.unpack_from(self._points, start)
            current, replicas = _SIZES.unpack_from(self._points, start + _TIME.size)
            first = start + _TIME.size + _SIZES.size
            metrics = [_METRIC.unpack_from(self._points, first + _METRIC.size * n) for n in range(len(self.metrics))]
            yield at, current, replicas, metrics


def _size(metrics: int) -> int:
    return _TIME.size + _SIZES.size + _METRIC.size * metrics


def _packed(decision: Decision, seen: Sequence[MetricStep], metrics: int) -> bytes:
    head = _TIME.pack(decision.at.timestamp()) + _SIZES.pack(decision.status.current_replicas, decision.replicas)
    if not seen:
        return head + _METRIC.pack(_NOTHING, _NOTHING, _NOTHING, Read.NOT_ASKED) * metrics
    return head + b"".join(map(_packed_metric, seen))


def _packed_metric(step: MetricStep) -> bytes:
    match step:
        case MetricAnswered(calculation=calculation) if calculation.utilization is not None:
            return _METRIC.pack(calculation.utilization, calculation.target, step.replicas, Read.WELL)
        case MetricAnswered(calculation=calculation):
            return _METRIC.pack(calculation.usage / 1000, calculation.target / 1000, step.replicas, Read.WELL)
        case MetricFellBack():
            return _METRIC.pack(_NOTHING, _NOTHING, step.replicas, Read.FELL_BACK)
        case MetricFailed():
            return _METRIC.pack(_NOTHING, _NOTHING, _NOTHING, Read.FAILED)


def _shown(number: float) -> float | None:
    """Undo what packing does to a number: 0.1 must not become 0.10000000149."""
    if math.isnan(number):
        return None
    rounded = float(f"{number:.6g}")
    return int(rounded) if rounded.is_integer() else rounded
