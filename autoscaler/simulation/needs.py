"""The replicas that an outage would need: the highest demand while a fallback could be active."""

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from math import ceil, isnan

from autoscaler.simulation.run import SimulatedRun


def needs(run: SimulatedRun, begin: float, length: float, maximum: int) -> list[int]:
    """Return for an outage that starts at each decision the highest demand from ``begin`` to ``length`` seconds later.

    The demand is limited to ``maximum``, because no fallback can exceed maxReplicas. Outages that do not end within
    the run, and those without a known demand, are left out.
    """
    return [need for _, need in _needs(run, begin, length, maximum)]


def _needs(run: SimulatedRun, begin: float, length: float, maximum: int) -> list[tuple[float, int]]:
    found: list[tuple[float, int]] = []
    window: deque[int] = deque()  # indexes with falling demands: the first one has the highest of the window
    entered = 0
    for start in run.times:
        if start + length > run.end:
            break
        while entered < len(run.times) and run.times[entered] < start + length:
            if not isnan(run.demand[entered]):
                while window and run.demand[window[-1]] <= run.demand[entered]:
                    window.pop()
                window.append(entered)
            entered += 1
        while window and run.times[window[0]] < start + begin:
            window.popleft()
        if window:
            found.append((start, min(int(run.demand[window[0]]), maximum)))
    return found


def needs_by_hour_of_week(run: SimulatedRun, begin: float, length: float, maximum: int) -> list[list[int | None]]:
    """Return seven rows, Monday first, of 24 values: the highest need of an outage that starts in that hour (UTC)."""
    grid: list[list[int | None]] = [[None] * 24 for _ in range(7)]
    for start, need in _needs(run, begin, length, maximum):
        at = datetime.fromtimestamp(start, UTC)
        known = grid[at.weekday()][at.hour]
        grid[at.weekday()][at.hour] = need if known is None else max(known, need)
    return grid


def quantile(values: Sequence[int], share: float) -> int:
    """Return the smallest of the values that at least this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(ceil(share * len(ordered)) - 1, 0)]
