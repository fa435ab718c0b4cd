"""Stabilization: choose among the recommendations of the window, so that short dips and spikes cause no rescale.

Like upstream there are two algorithms. Without ``behavior`` the highest recommendation of the window is used, even if
it exceeds the current replicas. With ``behavior`` the current replicas are clamped to the lowest and the highest
recommendation of the windows. A recommendation exactly as old as the window counts only without ``behavior``.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from operator import attrgetter

from autoscaler.settings import Settings
from autoscaler.types.history import Recommendation
from autoscaler.types.record import Record
from autoscaler.types.spec import Behavior
from autoscaler.types.steps import StabilizationStep


class StabilizationResult(Record):
    """The step, and the recent recommendations including the new one."""

    step: StabilizationStep
    recommendations: tuple[Recommendation, ...]


def stabilize(
    recommended: int,
    current: int,
    recommendations: tuple[Recommendation, ...],
    behavior: Behavior | None,
    settings: Settings,
    now: datetime,
) -> StabilizationResult:
    """Return the stabilized recommendation, and the recommendations to keep."""
    if behavior is None:
        return _without_behavior(recommended, current, recommendations, settings.downscale_stabilization, now)
    return _with_behavior(recommended, current, recommendations, windows(behavior, settings), now)


def windows(behavior: Behavior, settings: Settings) -> tuple[timedelta, timedelta]:
    """Return the scale-up and the scale-down window; the latter defaults to the flag, in whole seconds."""
    up = behavior.scale_up.stabilization_window_seconds if behavior.scale_up else None
    down = behavior.scale_down.stabilization_window_seconds if behavior.scale_down else None
    if down is None:
        down = int(settings.downscale_stabilization.total_seconds())
    return timedelta(seconds=up or 0), timedelta(seconds=down)


def _without_behavior(
    recommended: int, current: int, recommendations: tuple[Recommendation, ...], window: timedelta, now: datetime
) -> StabilizationResult:
    cutoff = now - window
    highest, outdated = recommended, -1
    for index, recommendation in enumerate(recommendations):
        if recommendation.at < cutoff:
            outdated = index
        elif recommendation.replicas > highest:
            highest = recommendation.replicas
    updated = _add(recommendations, outdated, Recommendation(recommended, now))
    held_by = None
    if highest != recommended:
        held_by = _latest(r for r in recommendations if r.at >= cutoff and r.replicas >= highest)
    return StabilizationResult(StabilizationStep(recommended, highest, current, window, held_by), updated)


def _with_behavior(
    recommended: int,
    current: int,
    recommendations: tuple[Recommendation, ...],
    window_pair: tuple[timedelta, timedelta],
    now: datetime,
) -> StabilizationResult:
    up, down = window_pair
    up_cutoff, down_cutoff = now - up, now - down
    lowest = highest = recommended
    outdated = -1
    first_cutoff = min(up_cutoff, down_cutoff)
    for index, recommendation in enumerate(recommendations):
        at, replicas = recommendation.at, recommendation.replicas
        if replicas < lowest and at > up_cutoff:
            lowest = replicas
        if replicas > highest and at > down_cutoff:
            highest = replicas
        if at < first_cutoff:
            outdated = index
    stabilized = min(max(current, lowest), highest)
    updated = _add(recommendations, outdated, Recommendation(recommended, now))
    step = StabilizationStep(recommended, stabilized, current, down)
    if stabilized < recommended:
        held_by = _latest(r for r in recommendations if r.at > up_cutoff and r.replicas <= stabilized)
        step = StabilizationStep(recommended, stabilized, current, up, held_by, scale_up=True)
    elif stabilized > recommended:
        held_by = _latest(r for r in recommendations if r.at > down_cutoff and r.replicas >= stabilized)
        step = StabilizationStep(recommended, stabilized, current, down, held_by)
    return StabilizationResult(step, updated)


def _add(
    recommendations: tuple[Recommendation, ...], outdated: int, recommendation: Recommendation
) -> tuple[Recommendation, ...]:
    """Overwrite the last outdated entry, or append."""
    if outdated < 0:
        return (*recommendations, recommendation)
    return (*recommendations[:outdated], recommendation, *recommendations[outdated + 1 :])


def _latest(candidates: Iterable[Recommendation]) -> Recommendation:
    return max(candidates, key=attrgetter("at"))
