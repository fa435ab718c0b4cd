"""The text output of the demo: phases, queue lengths, and the decisions of the autoscaler with their reasons.

`changes` compares a decision with the previous one, and is pure; the narrator prints the changes and collects them for
the summary table. Lines have at most 80 columns.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from textwrap import wrap
from typing import Final, TypeAlias

from adapter.demo.order_queue import QueueState
from autoscaler.algorithm.formatting import count, decimal, time_of_day
from autoscaler.sharding.held_shards import HeldShards
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.limiting_factor import LimitingFactor
from autoscaler.types.record import Record
from autoscaler.types.steps import MetricFallbackStep, MetricProposalStep, MetricUnavailableStep

_MetricStep: TypeAlias = MetricProposalStep | MetricUnavailableStep | MetricFallbackStep
WIDTH: Final = 80


class ChangeKind(StrEnum):
    """The kinds of changes that are printed."""

    SCALED_UP = "scaled up"
    SCALED_DOWN = "scaled down"
    SCALED_TO_ZERO = "scaled to zero"
    SCALED_FROM_ZERO = "scaled from zero"
    METRIC_FAILING = "metric failing"
    FALLBACK = "fallback"
    METRIC_RECOVERED = "metric recovered"


class Change(Record):
    """A difference between two consecutive decisions."""

    time: datetime
    kind: ChangeKind
    reason: str
    current: int
    replicas: int

    @property
    def scaling(self) -> str:
        return f"{self.current} → {self.replicas}" if self.current != self.replicas else str(self.current)


def changes(previous: Decision | None, decision: Decision) -> Iterator[Change]:
    """Yield the changes since the previous decision."""
    step, previous_step = _metric_step(decision), None if previous is None else _metric_step(previous)
    was_failing = isinstance(previous_step, MetricUnavailableStep | MetricFallbackStep)
    time, current = decision.at, decision.status.current_replicas
    match step:
        case MetricUnavailableStep() if not was_failing:
            yield Change(time, ChangeKind.METRIC_FAILING, _failing_reason(step), current, current)
        case MetricFallbackStep() if not isinstance(previous_step, MetricFallbackStep):
            duration = int((time - step.failing_since).total_seconds())
            reason = f"{step.metric} has been unavailable for {duration} s"
            yield Change(time, ChangeKind.FALLBACK, reason, current, current)
        case MetricProposalStep() if was_failing:
            reason = f"{step.metric} is available again"
            yield Change(time, ChangeKind.METRIC_RECOVERED, reason, current, current)
        case _:
            pass
    if decision.scale_to is not None:
        reason = _scaling_reason(step, decision.limiting_factor)
        yield Change(time, _direction(current, decision.scale_to), reason, current, decision.scale_to)


def table(day: Sequence[Change]) -> str:
    rows = [f"{'time':<10}{'replicas':<10}{'change':<18}reason"]
    indent = " " * 38
    for change in day:
        row = f"{time_of_day(change.time):<10}{change.scaling:<10}{change.kind:<18}{change.reason}"
        rows += wrap(row, WIDTH, subsequent_indent=indent, drop_whitespace=True, break_on_hyphens=False)
    return "\n".join(rows)


class Narrator:
    """Prints phases, queue lengths and decisions; a `autoscaler.ports.DecisionListener`."""

    def __init__(self, write: Callable[[str], object], now: Callable[[], datetime]) -> None:
        self.day: list[Change] = []
        self._write = write
        self._now = now
        self._previous: dict[str, Decision] = {}

    def on_decision(self, key: str, autoscaler: Autoscaler, decision: Decision) -> None:  # noqa: ARG002 - protocol
        for change in changes(self._previous.get(key), decision):
            self.day.append(change)
            scaling = change.scaling if change.current != change.replicas else f"stays at {change.current}"
            self._print(change.time, f"  autoscaler: {change.kind}, {scaling} ({change.reason})")
        self._previous[key] = decision

    def on_deleted(self, key: str) -> None:
        self._previous.pop(key, None)

    def on_leadership_acquired(self, keys: Collection[str], shards: HeldShards) -> None:
        pass

    def on_leadership_lost(self) -> None:
        """Do nothing: the demo has a single process."""

    def announce(self, text: str) -> None:
        self._write("\n")
        self._print(self._now(), text)

    def report_queue(self, queue: QueueState, consumers: int, *, is_measured: bool) -> None:
        unknown = "" if is_measured else " (unknown to the autoscaler)"
        self._print(self._now(), f"  queue: {count(queue.messages, 'order')}{unknown}, {count(consumers, 'consumer')}")

    def _print(self, time: datetime, text: str) -> None:
        lines = wrap(f"{time_of_day(time):<10}{text}", WIDTH, subsequent_indent=" " * 14, break_on_hyphens=False)
        self._write("".join(f"{line}\n" for line in lines))


def _metric_step(decision: Decision) -> _MetricStep | None:
    return next((step for step in decision.steps if isinstance(step, _MetricStep)), None)


def _direction(current: int, replicas: int) -> ChangeKind:
    if replicas == 0:
        return ChangeKind.SCALED_TO_ZERO
    if current == 0:
        return ChangeKind.SCALED_FROM_ZERO
    return ChangeKind.SCALED_UP if replicas > current else ChangeKind.SCALED_DOWN


def _failing_reason(step: MetricUnavailableStep) -> str:
    reason = f"{step.metric} is unavailable"
    if step.fallback_at is None:
        return reason
    fallback = count(step.fallback_replicas or 0, "replica")
    return f"{reason}; fallback to {fallback} at {time_of_day(step.fallback_at)}"


def _scaling_reason(step: _MetricStep | None, factor: LimitingFactor) -> str:
    match step:
        case MetricProposalStep(current=0):
            reason = "there are orders but no consumers"
        case MetricProposalStep(calculation=calculation):
            reason = f"{decimal(calculation.usage)} orders per consumer, target {decimal(calculation.target)}"
        case MetricFallbackStep():
            reason = f"fallback of {count(step.replicas, 'replica')}"
        case _:
            reason = "replicas outside of minReplicas and maxReplicas"
    if factor in {LimitingFactor.NONE, LimitingFactor.FALLBACK}:
        return reason
    return f"{reason}; limiting factor: {factor.value}"
