"""Measures of elasticity of one run, as the SPEC Research Group defines them; ``docs/simulation.md`` explains each.

Demand and supply are step functions: the values of a decision apply until the next one. Supply is the number of ready
replicas. Periods without a known demand count for the replica-hours only.
"""

import itertools
from collections.abc import Iterator, Sequence
from math import isnan
from typing import Final, NamedTuple

from autoscaler.simulation.run import SimulatedRun
from autoscaler.types.record import Record

STEP_RATIO: Final = 1.5
STEP_REPLICAS: Final = 2
"""A step of the demand is a rise by both at once: to 1.5 times, and by 2 replicas."""

_HOUR: Final = 3600.0


class Measures(Record):
    """The measures of one run."""

    duration_seconds: float
    unknown_seconds: float
    """Time without a known demand; not part of the shares and accuracies."""

    replica_hours: float
    under_accuracy: float
    """The average number of missing replicas."""

    over_accuracy: float
    """The average number of surplus replicas."""

    under_time_share: float
    over_time_share: float
    longest_under_seconds: float
    rescales: int
    direction_changes: int
    jitter_per_hour: float
    """Rescales minus changes of the demand, per hour. Negative: the supply changes less often than the demand."""

    steps: int
    """Number of steps of the demand."""

    catch_up_seconds: float | None = None
    """Median time after a step of the demand until the supply reaches it; None if there is no step."""

    catch_up_max_seconds: float | None = None
    fallback_seconds: float = 0.0
    peak_value: float | None = None
    """The highest value of the first metric: of the model ``queue`` the peak backlog."""

    p99_value: float | None = None
    """The value that the first metric does not exceed for 99 % of the time."""


class _Interval(NamedTuple):
    start: float
    length: float
    supply: int
    demand: float


def measure(run: SimulatedRun) -> Measures:
    """Return the measures of a run with at least one decision."""
    intervals = list(_intervals(run))
    known = [each for each in intervals if not isnan(each.demand)]
    observed = sum(each.length for each in known)
    total = sum(each.length for each in intervals)
    under = sum(max(each.demand - each.supply, 0.0) * each.length for each in known)
    over = sum(max(each.supply - each.demand, 0.0) * each.length for each in known)
    catch_ups = sorted(_catch_ups(known))
    changes = sum(1 for before, after in itertools.pairwise(known) if before.demand != after.demand)
    lengths = [each.length for each in intervals]
    return Measures(
        duration_seconds=total,
        unknown_seconds=total - observed,
        replica_hours=sum(count * length for count, length in zip(run.replicas, lengths, strict=True)) / _HOUR,
        under_accuracy=_share(under, observed),
        over_accuracy=_share(over, observed),
        under_time_share=_share(sum(each.length for each in known if each.supply < each.demand), observed),
        over_time_share=_share(sum(each.length for each in known if each.supply > each.demand), observed),
        longest_under_seconds=_longest_under(intervals),
        rescales=len(run.rescales),
        direction_changes=_direction_changes([after - before for _, before, after in run.rescales]),
        jitter_per_hour=_share(len(run.rescales) - changes, total / _HOUR),
        steps=len(catch_ups),
        catch_up_seconds=catch_ups[(len(catch_ups) - 1) // 2] if catch_ups else None,
        catch_up_max_seconds=catch_ups[-1] if catch_ups else None,
        fallback_seconds=sum(length for length, active in zip(lengths, run.fallback, strict=True) if active),
        peak_value=_quantile(run.values[0], lengths, 1.0),
        p99_value=_quantile(run.values[0], lengths, 0.99),
    )


def _intervals(run: SimulatedRun) -> Iterator[_Interval]:
    ends = [*run.times[1:], run.end]
    for start, end, supply, demand in zip(run.times, ends, run.ready, run.demand, strict=True):
        yield _Interval(start, end - start, supply, demand)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _longest_under(intervals: Sequence[_Interval]) -> float:
    longest = current = 0.0
    for each in intervals:
        current = current + each.length if each.supply < each.demand else 0.0
        longest = max(longest, current)
    return longest


def _direction_changes(changes: Sequence[int]) -> int:
    return sum(1 for before, after in itertools.pairwise(changes) if (before > 0) != (after > 0))


def _catch_ups(known: Sequence[_Interval]) -> Iterator[float]:
    """Yield for each step of the demand the time until the supply reaches it, or until the demand falls to the supply.

    A rise while the supply still lags behind an earlier step belongs to that step.
    """
    started: float | None = None
    for before, now in itertools.pairwise(known):
        is_step = now.demand >= before.demand * STEP_RATIO and now.demand - before.demand >= STEP_REPLICAS
        if started is None and is_step:
            started = now.start
        if started is not None and now.supply >= now.demand:
            yield now.start - started
            started = None
    if started is not None:
        yield known[-1].start + known[-1].length - started


def _quantile(values: Sequence[float], lengths: Sequence[float], share: float) -> float | None:
    """Return the value that is not exceeded for this share of the time in which there is a value."""
    known = sorted((value, length) for value, length in zip(values, lengths, strict=True) if not isnan(value))
    limit, passed = share * sum(length for _, length in known), 0.0
    for value, length in known:
        passed += length
        if passed >= limit:
            return value
    return known[-1][0] if known else None
