"""Carries out a decision: the scale if it is new, then the events, then the status if it says anything new.

The order is upstream's, and it is the safe one: what is said to have happened has happened. A status that could not be
written is remembered and said again, because two things in it must not be lost: who scaled the target to zero, and
since when a metric cannot be read.

Zero is the exception: it is announced first. A zero that nobody knows to be ours is one that nobody wakes from, and a
process can end between any two writes.
"""

from msgspec.structs import replace

from autoscaler.algorithm.conditions import SCALED_TO_ZERO
from autoscaler.algorithm.write_failures import after_failed_rescale, after_failed_status_write
from autoscaler.controller import persistence
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.state import Entry
from autoscaler.kube.client_go_messages import in_words
from autoscaler.kube.errors import KubeError
from autoscaler.kube.scale import NotRescaled
from autoscaler.settings import Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.status import TRUE, Condition, MetricStatus, Status


class NotLeader(Exception):
    """The process may no longer write: another one controls, or may do so at any moment."""


async def act(
    decision: Decision, *, stored: Autoscaler, known: Autoscaler, entry: Entry, world: Dependencies, settings: Settings
) -> Decision:
    """Carry it out, remember it, and give what it has become.

    ``stored`` is the object as the API server has it; ``known`` the same as the decision saw it.
    """
    stored, decision = await _announce_zero(decision, stored, known, entry, world)
    decision = await _rescale(decision, known, entry, world)
    entry.history = decision.history
    for event in decision.events:
        world.events.tell(known, event)
    said = len(decision.events)
    decision = await say(decision, stored, known, entry, world, settings)
    for event in (*decision.events[said:], *decision.late_events):
        world.events.tell(known, event)
    entry.decision = decision
    return decision


async def _announce_zero(
    decision: Decision, stored: Autoscaler, known: Autoscaler, entry: Entry, world: Dependencies
) -> tuple[Autoscaler, Decision]:
    """Say that a zero is going to be ours, and give the object that says so; if it cannot be said, do not go there."""
    zero = decision.status.condition(SCALED_TO_ZERO)
    is_ours = decision.scale_to == 0 and zero is not None and zero.status == TRUE
    if zero is None or not is_ours or _is_zeroed(stored.status):
        return stored, decision
    if not world.may_write():
        raise NotLeader
    announced = replace(stored.status, conditions=_with(stored.status.conditions, zero))
    try:
        return await world.statuses.write(stored, announced), decision
    except KubeError as error:
        why = in_words(error, f"patch podautoscalers {known.metadata.name}")
        return stored, after_failed_rescale(decision, known, entry.history, f"zero could not be announced: {why}")


async def _rescale(decision: Decision, known: Autoscaler, entry: Entry, world: Dependencies) -> Decision:
    if decision.scale_to is None:
        return decision
    if not world.may_write():
        raise NotLeader
    written = await world.scales.write(known, decision.scale_to)
    if isinstance(written, NotRescaled):
        return after_failed_rescale(decision, known, entry.history, written.message)
    entry.rescaled_at = decision.at
    return decision


async def say(
    decision: Decision, stored: Autoscaler, known: Autoscaler, entry: Entry, world: Dependencies, settings: Settings
) -> Decision:
    """Write the status if it differs from what the API server has, or if the past would be lost."""
    essence = persistence.essence(decision.history, known.spec, decision.at)
    if decision.status.says_the_same_as(stored.status) and not persistence.would_miss(entry.kept, essence):
        entry.unsaid, entry.failures = None, 0
        return decision
    line = persistence.write_down(decision.history, known.spec, settings, decision.at)
    if not world.may_write():
        raise NotLeader
    try:
        await world.statuses.write(stored, replace(decision.status, memory=line))
    except KubeError as error:
        entry.unsaid, entry.failures = decision.status, entry.failures + 1
        name = known.metadata.name
        return after_failed_status_write(decision, name, in_words(error, f"patch podautoscalers {name}"))
    entry.kept, entry.unsaid, entry.failures = essence, None, 0
    return decision


def with_unsaid(status: Status, unsaid: Status | None) -> Status:
    """Lay over what the API server has what we know better: the zero that is ours, and the clocks that run or ended."""
    if unsaid is None:
        return status
    zero = unsaid.condition(SCALED_TO_ZERO)
    is_news = zero is not None and (zero.status == TRUE) != _is_zeroed(status)
    conditions = _with(status.conditions, zero) if zero is not None and is_news else status.conditions
    has_clock = _has_clock(unsaid.current_metrics) or _has_clock(status.current_metrics)
    metrics = unsaid.current_metrics if has_clock else status.current_metrics
    return replace(status, conditions=conditions, current_metrics=metrics)


def _with(conditions: tuple[Condition, ...], one: Condition) -> tuple[Condition, ...]:
    if any(old.type == one.type for old in conditions):
        return tuple(one if old.type == one.type else old for old in conditions)
    return (*conditions, one)


def _is_zeroed(status: Status) -> bool:
    zero = status.condition(SCALED_TO_ZERO)
    return zero is not None and zero.status == TRUE


def _has_clock(metrics: tuple[MetricStatus, ...] | None) -> bool:
    return any(one.external is not None and one.external.first_failure_time is not None for one in metrics or ())
