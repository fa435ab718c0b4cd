"""Limit a stabilized recommendation by the scaling policies and by the bound of its direction."""

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
from autoscaler.types.steps import LimitStep, ScalingLimit
from autoscaler.values.arithmetic import MAX_INT32, MIN_INT32, ceiling32, truncated32, wrap32


class Direction(IntEnum):
    """The direction of a change."""

    DOWN = -1
    UP = 1


class AllowedRate(Record):
    """The replica count that the policies of one direction allow, and the policy that determined it."""

    allowed: int
    policy: Policy | None = None


def limit(
    stabilized: int, current: int, bounds: tuple[int, int], behavior: Behavior | None, history: History, now: datetime
) -> LimitStep:
    """Return the replica count that policies and bounds allow."""
    if behavior is None:
        return _without_behavior(stabilized, current, bounds)
    if stabilized > current and behavior.scale_up is not None:
        rate = allowed_rate(Direction.UP, current, behavior.scale_up, history, now)
        return _with_rate(Direction.UP, stabilized, max(rate.allowed, current), bounds[1], rate, history, now)
    if stabilized < current and behavior.scale_down is not None:
        rate = allowed_rate(Direction.DOWN, current, behavior.scale_down, history, now)
        return _with_rate(Direction.DOWN, stabilized, min(rate.allowed, current), bounds[0], rate, history, now)
    return LimitStep(stabilized, stabilized)


def default_rate(current: int) -> int:
    """Return upstream's limit without behavior: double, or 4 replicas, whichever is more."""
    return truncated32(max(2.0 * current, 4.0))


def _without_behavior(stabilized: int, current: int, bounds: tuple[int, int]) -> LimitStep:
    """Apply both bounds and the fixed scale-up rate; scaling down has no rate limit."""
    minimum, maximum = bounds
    allowed = default_rate(current)
    if stabilized < minimum:
        return LimitStep(stabilized, minimum, ScalingLimit.MINIMUM, allowed, fixed_rate=True)
    if stabilized > min(allowed, maximum):
        reason = ScalingLimit.UP_RATE if maximum > allowed else ScalingLimit.MAXIMUM
        return LimitStep(stabilized, min(allowed, maximum), reason, allowed, fixed_rate=True)
    return LimitStep(stabilized, stabilized, ScalingLimit.NONE, allowed, fixed_rate=True)


def _with_rate(
    direction: Direction, stabilized: int, allowed: int, bound: int, rate: AllowedRate, history: History, now: datetime
) -> LimitStep:
    """Apply the rate and the bound of the direction; like upstream, not the other bound."""
    is_up = direction is Direction.UP
    replicas = min(stabilized, allowed, bound) if is_up else max(stabilized, allowed, bound)
    if replicas == stabilized:
        return LimitStep(stabilized, replicas, ScalingLimit.NONE, rate.allowed, rate.policy)
    if replicas == bound:
        reason = ScalingLimit.MAXIMUM if is_up else ScalingLimit.MINIMUM
        return LimitStep(stabilized, replicas, reason, rate.allowed, rate.policy)
    reason = ScalingLimit.UP_RATE if is_up else ScalingLimit.DOWN_RATE
    until = _rate_increases_at(rate.policy, history, now)
    return LimitStep(stabilized, replicas, reason, rate.allowed, rate.policy, until)


def allowed_rate(
    direction: Direction, current: int, rules: ScalingRules, history: History, now: datetime
) -> AllowedRate:
    """Return the replica count that the policies allow; any selectPolicy other than Min and Disabled means Max."""
    if rules.select_policy == SELECT_DISABLED:
        return AllowedRate(current)
    largest_change = rules.select_policy != SELECT_MIN
    largest_wins = largest_change == (direction is Direction.UP)
    best, chosen, allowed = (MIN_INT32 if largest_wins else MAX_INT32), None, 0
    for policy in rules.policies or ():
        allowed = _allowed_by(policy, direction, _replicas_at_start_of(policy, current, history, now), allowed)
        if allowed > best if largest_wins else allowed < best:
            best, chosen = allowed, policy
    return AllowedRate(best, chosen)


def _allowed_by(policy: Policy, direction: Direction, start: int, previous: int) -> int:
    """Apply one policy. Like upstream, percentages round up when scaling up and towards zero when scaling down.

    A policy of unknown type allows what the previous policy allows, as in upstream.
    """
    if policy.type == PODS_POLICY:
        return wrap32(start + direction * policy.value)
    if policy.type == PERCENT_POLICY:
        scaled = start * (1 + direction * policy.value / 100)
        return ceiling32(scaled) if direction is Direction.UP else truncated32(scaled)
    return previous


def _replicas_at_start_of(policy: Policy, current: int, history: History, now: datetime) -> int:
    since = now - timedelta(seconds=policy.period_seconds)
    added = sum(event.change for event in history.scale_ups if event.at > since)
    removed = sum(event.change for event in history.scale_downs if event.at > since)
    return wrap32(current - added + removed)


def _rate_increases_at(policy: Policy | None, history: History, now: datetime) -> datetime | None:
    if policy is None:
        return None
    period = timedelta(seconds=policy.period_seconds)
    recent = [event.at + period for event in (*history.scale_ups, *history.scale_downs) if event.at + period > now]
    return min(recent, default=None)


def record_rescale(history: History, behavior: Behavior | None, before: int, after: int, now: datetime) -> History:
    """Add a rescale to the history; without behavior no policy needs it."""
    if behavior is None:
        return history
    if after > before:
        scale_ups = _record(history.scale_ups, behavior.scale_up, ScaleEvent(wrap32(after - before), now))
        return msgspec.structs.replace(history, scale_ups=scale_ups)
    scale_downs = _record(history.scale_downs, behavior.scale_down, ScaleEvent(wrap32(before - after), now))
    return msgspec.structs.replace(history, scale_downs=scale_downs)


def _record(events: tuple[ScaleEvent, ...], rules: ScalingRules | None, event: ScaleEvent) -> tuple[ScaleEvent, ...]:
    """Mark events older than the longest period as outdated, and overwrite the last outdated one, or append."""
    longest_period = max((policy.period_seconds for policy in (rules.policies if rules else None) or ()), default=0)
    cutoff = event.at - timedelta(seconds=max(longest_period, 0))
    marked = [old if old.at >= cutoff else ScaleEvent(old.change, old.at, outdated=True) for old in events]
    last_outdated = max((index for index, old in enumerate(marked) if old.outdated), default=None)
    if last_outdated is None:
        return (*marked, event)
    marked[last_outdated] = event
    return tuple(marked)
