"""Rate policies, then the bound of the direction travelled: how far one pass may go."""

from datetime import datetime, timedelta
from enum import IntEnum

import msgspec

from autoscaler.types.history import History, ScaleEvent
from autoscaler.types.record import Record
from autoscaler.types.spec import (
    PERCENT_POLICY,
    PODS_POLICY,
    SELECT_DISABLED,
    SELECT_MIN,
    Behavior,
    Policy,
    ScalingRules,
)
from autoscaler.types.steps import Limit, Limited
from autoscaler.values.arithmetic import MAX_INT32, MIN_INT32, ceiling32, truncated32, wrap32


class Direction(IntEnum):
    """Which way a pass travels."""

    DOWN = -1
    UP = 1


class Rate(Record):
    """The size that one direction's policies allow, and the policy that decided."""

    allowed: int
    policy: Policy | None = None


def limit(
    steady: int, current: int, bounds: tuple[int, int], behavior: Behavior | None, past: History, now: datetime
) -> Limited:
    """Take the step that is allowed towards the steady recommendation."""
    if behavior is None:
        return _without_behavior(steady, current, bounds)
    if steady > current and behavior.scale_up is not None:
        return _upwards(
            steady, current, bounds[1], rate(Direction.UP, current, behavior.scale_up, past, now), past, now
        )
    if steady < current and behavior.scale_down is not None:
        return _downwards(
            steady, current, bounds[0], rate(Direction.DOWN, current, behavior.scale_down, past, now), past, now
        )
    return Limited(steady, steady)


def legacy_rate(current: int) -> int:
    """Allow doubling, or four pods, whichever is more."""
    return truncated32(max(2.0 * current, 4.0))


def _without_behavior(steady: int, current: int, bounds: tuple[int, int]) -> Limited:
    """Hold both bounds, and the fixed rate upwards; there is none downwards."""
    minimum, maximum = bounds
    allowed = legacy_rate(current)
    if steady < minimum:
        return Limited(steady, minimum, Limit.MINIMUM, allowed, fixed_rate=True)
    if steady > min(allowed, maximum):
        reason = Limit.UP_RATE if maximum > allowed else Limit.MAXIMUM
        return Limited(steady, min(allowed, maximum), reason, allowed, fixed_rate=True)
    return Limited(steady, steady, Limit.NONE, allowed, fixed_rate=True)


def _upwards(steady: int, current: int, maximum: int, pace: Rate, past: History, now: datetime) -> Limited:
    """Hold the rate and the maximum; the minimum is not looked at on the way up."""
    allowed = max(pace.allowed, current)
    if steady <= min(allowed, maximum):
        return Limited(steady, steady, Limit.NONE, pace.allowed, pace.policy)
    if maximum > allowed:
        return Limited(steady, allowed, Limit.UP_RATE, pace.allowed, pace.policy, _forgets_at(pace.policy, past, now))
    return Limited(steady, maximum, Limit.MAXIMUM, pace.allowed, pace.policy)


def _downwards(steady: int, current: int, minimum: int, pace: Rate, past: History, now: datetime) -> Limited:
    """Hold the rate and the minimum; the maximum is not looked at on the way down."""
    allowed = min(pace.allowed, current)
    if steady >= max(allowed, minimum):
        return Limited(steady, steady, Limit.NONE, pace.allowed, pace.policy)
    if minimum < allowed:
        return Limited(steady, allowed, Limit.DOWN_RATE, pace.allowed, pace.policy, _forgets_at(pace.policy, past, now))
    return Limited(steady, minimum, Limit.MINIMUM, pace.allowed, pace.policy)


def rate(direction: Direction, current: int, rules: ScalingRules, past: History, now: datetime) -> Rate:
    """Find the size that the policies of a direction allow; any selectPolicy but Min and Disabled means Max."""
    if rules.select_policy == SELECT_DISABLED:
        return Rate(current)
    most_change = rules.select_policy != SELECT_MIN
    largest_wins = most_change == (direction is Direction.UP)
    best, chosen, allowed = (MIN_INT32 if largest_wins else MAX_INT32), None, 0
    for policy in rules.policies or ():
        allowed = _allowed_by(policy, direction, _size_at_start_of(policy, current, past, now), allowed)
        if allowed > best if largest_wins else allowed < best:
            best, chosen = allowed, policy
    return Rate(best, chosen)


def _allowed_by(policy: Policy, direction: Direction, start: int, otherwise: int) -> int:
    """Apply one policy. Percentages round up on the way up and towards zero on the way down, float noise included."""
    if policy.type == PODS_POLICY:
        return wrap32(start + direction * policy.value)
    if policy.type == PERCENT_POLICY:
        scaled = start * (1 + direction * policy.value / 100)
        return ceiling32(scaled) if direction is Direction.UP else truncated32(scaled)
    return otherwise


def _size_at_start_of(policy: Policy, current: int, past: History, now: datetime) -> int:
    """Undo the rescales of the policy's period."""
    since = now - timedelta(seconds=policy.period_seconds)
    added = sum(event.change for event in past.scale_ups if event.at > since)
    removed = sum(event.change for event in past.scale_downs if event.at > since)
    return wrap32(current - added + removed)


def _forgets_at(policy: Policy | None, past: History, now: datetime) -> datetime | None:
    if policy is None:
        return None
    period = timedelta(seconds=policy.period_seconds)
    recent = [event.at + period for event in (*past.scale_ups, *past.scale_downs) if event.at + period > now]
    return min(recent, default=None)


def remember_rescale(past: History, behavior: Behavior | None, before: int, after: int, now: datetime) -> History:
    """Remember a rescale for the policies; without behavior nobody would ask."""
    if behavior is None:
        return past
    if after > before:
        scale_ups = _remember(past.scale_ups, behavior.scale_up, ScaleEvent(wrap32(after - before), now))
        return msgspec.structs.replace(past, scale_ups=scale_ups)
    scale_downs = _remember(past.scale_downs, behavior.scale_down, ScaleEvent(wrap32(before - after), now))
    return msgspec.structs.replace(past, scale_downs=scale_downs)


def _remember(events: tuple[ScaleEvent, ...], rules: ScalingRules | None, event: ScaleEvent) -> tuple[ScaleEvent, ...]:
    """Flag what this direction's longest period has left behind, and overwrite the last flagged one, or add."""
    longest = max((policy.period_seconds for policy in (rules.policies if rules else None) or ()), default=0)
    cutoff = event.at - timedelta(seconds=max(longest, 0))
    kept = [old if old.at >= cutoff else ScaleEvent(old.change, old.at, outdated=True) for old in events]
    slot = max((index for index, old in enumerate(kept) if old.outdated), default=None)
    if slot is None:
        return (*kept, event)
    kept[slot] = event
    return tuple(kept)
