"""Chooses within the recent recommendations, so that a short dip or spike moves nothing.

There are two paths because upstream has two. Without ``behavior`` the highest recommendation of the window wins, even
if that is more than the current size; with it the current size moves no further than the window's extremes. They also
differ at the edge: without, a recommendation exactly as old as the window still counts; with, it does not.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from operator import attrgetter

from autoscaler.settings import Settings
from autoscaler.types.history import Recommendation
from autoscaler.types.record import Record
from autoscaler.types.spec import Behavior
from autoscaler.types.steps import Stabilized


class Steadied(Record):
    """The step, and the memory with this pass's recommendation in it."""

    step: Stabilized
    remembered: tuple[Recommendation, ...]


def stabilize(
    wanted: int,
    current: int,
    recommendations: tuple[Recommendation, ...],
    behavior: Behavior | None,
    settings: Settings,
    now: datetime,
) -> Steadied:
    """Choose within the recent recommendations, and remember this one."""
    if behavior is None:
        return _without_behavior(wanted, current, recommendations, settings.downscale_stabilization, now)
    return _with_behavior(wanted, current, recommendations, windows(behavior, settings), now)


def windows(behavior: Behavior, settings: Settings) -> tuple[timedelta, timedelta]:
    """Give the windows for up and down; the one for down may be left to the cluster, in whole seconds."""
    up = behavior.scale_up.stabilization_window_seconds if behavior.scale_up else None
    down = behavior.scale_down.stabilization_window_seconds if behavior.scale_down else None
    if down is None:
        down = int(settings.downscale_stabilization.total_seconds())
    return timedelta(seconds=up or 0), timedelta(seconds=down)


def _without_behavior(
    wanted: int, current: int, recommendations: tuple[Recommendation, ...], window: timedelta, now: datetime
) -> Steadied:
    cutoff = now - window
    highest, slot = wanted, -1
    for index, recommendation in enumerate(recommendations):
        if recommendation.at < cutoff:
            slot = index
        elif recommendation.replicas > highest:
            highest = recommendation.replicas
    remembered = _remember(recommendations, slot, Recommendation(wanted, now))
    if highest == wanted:
        return Steadied(Stabilized(wanted, wanted, current, window), remembered)
    held_by = _last(r for r in recommendations if r.at >= cutoff and r.replicas >= highest)
    return Steadied(Stabilized(wanted, highest, current, window, held_by), remembered)


def _with_behavior(
    wanted: int,
    current: int,
    recommendations: tuple[Recommendation, ...],
    up_and_down: tuple[timedelta, timedelta],
    now: datetime,
) -> Steadied:
    up, down = up_and_down
    up_cutoff, down_cutoff = now - up, now - down
    lowest = highest = wanted
    slot = -1
    for index, recommendation in enumerate(recommendations):
        at = recommendation.at
        if at > up_cutoff and recommendation.replicas < lowest:
            lowest = recommendation.replicas
        if at > down_cutoff and recommendation.replicas > highest:
            highest = recommendation.replicas
        if at < up_cutoff and at < down_cutoff:
            slot = index
    steady = min(max(current, lowest), highest)
    remembered = _remember(recommendations, slot, Recommendation(wanted, now))
    if steady < wanted:
        held_by = _last(r for r in recommendations if r.at > up_cutoff and r.replicas <= steady)
        return Steadied(Stabilized(wanted, steady, current, up, held_by, held_down=True), remembered)
    if steady > wanted:
        held_by = _last(r for r in recommendations if r.at > down_cutoff and r.replicas >= steady)
        return Steadied(Stabilized(wanted, steady, current, down, held_by), remembered)
    return Steadied(Stabilized(wanted, steady, current, down), remembered)


def _remember(
    recommendations: tuple[Recommendation, ...], slot: int, recommendation: Recommendation
) -> tuple[Recommendation, ...]:
    """Overwrite the last outdated slot, or add one."""
    if slot < 0:
        return (*recommendations, recommendation)
    return (*recommendations[:slot], recommendation, *recommendations[slot + 1 :])


def _last(candidates: Iterable[Recommendation]) -> Recommendation:
    return max(candidates, key=attrgetter("at"))
