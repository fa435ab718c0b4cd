"""Tells the demonstration in plain words: what the world does, and what the autoscaler makes of it.

`happenings` compares a decision with the one before it, and is pure; the narrator prints, and remembers for the end.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from adapter.demo.order_queue import Queue
from autoscaler.algorithm.explain import sentence
from autoscaler.algorithm.formatting import clock, count, number
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.limiting_factor import Bound
from autoscaler.types.record import Record
from autoscaler.types.steps import MetricAnswered, MetricFailed, MetricFellBack

_Metric: TypeAlias = MetricAnswered | MetricFailed | MetricFellBack
_MARGIN = " " * 10


class What(StrEnum):
    """What can happen to an autoscaler, in a word or two."""

    GREW = "grew"
    SHRANK = "shrank"
    TO_ZERO = "went to zero"
    WOKE = "woke up"
    FAILING = "cannot see"
    FELL_BACK = "fell back"
    RECOVERED = "sees again"
    WORLD = ""
    """Not the autoscaler's doing."""


class Happening(Record):
    """One line of the story."""

    at: datetime
    what: What
    says: str
    was: int = 0
    replicas: int = 0

    @property
    def is_rescale(self) -> bool:
        """Tell whether the number of replicas changed."""
        return self.was != self.replicas


def happenings(before: Decision | None, now: Decision) -> Iterator[Happening]:
    """Say what is new in a decision."""
    step, known = _metric(now), None if before is None else _metric(before)
    current = now.status.current_replicas
    match step:
        case MetricFailed() if not isinstance(known, MetricFailed | MetricFellBack):
            yield Happening(now.at, What.FAILING, _failing(step, current), current, current)
        case MetricFellBack() if not isinstance(known, MetricFellBack):
            yield Happening(now.at, What.FELL_BACK, _fell_back(step, now.at), current, current)
        case MetricAnswered() if isinstance(known, MetricFailed | MetricFellBack):
            says = f"{step.metric} can be read again; the fallback is over."
            yield Happening(now.at, What.RECOVERED, says, current, current)
        case _:
            pass
    if now.scale_to is not None:
        yield Happening(now.at, _direction(current, now.scale_to), _why(step, now.bound), current, now.scale_to)


def table(day: Sequence[Happening]) -> str:
    """Write what happened when, how many replicas there were then, and why."""
    rows = [f"  {'when':<10}{'replicas':<12}{'what':<14}why"]
    for each in day:
        size = f"{each.was} → {each.replicas}" if each.is_rescale else str(each.replicas)
        if each.what is not What.WORLD:
            rows.append(f"  {clock(each.at):<10}{size:<12}{each.what:<14}{each.says}")
    return "\n".join(rows)


class Narrator:
    """Hears of every decision (`autoscaler.ports.DecisionListener`), and of what the world does."""

    def __init__(self, write: Callable[[str], object], now: Callable[[], datetime]) -> None:
        self.day: list[Happening] = []
        self._write = write
        self._now = now
        self._before: dict[str, Decision] = {}

    def decided(self, key: str, autoscaler: Autoscaler, decision: Decision) -> None:  # noqa: ARG002 - the port's words
        """Tell what is new."""
        for each in happenings(self._before.get(key), decision):
            self.day.append(each)
            size = f"{each.was} → {each.replicas}" if each.is_rescale else f"stays at {each.replicas}"
            self._line(each.at, f"  {key} {each.what}: {size}", each.says)
        self._before[key] = decision

    def gone(self, key: str) -> None:
        """Forget an autoscaler."""
        self._before.pop(key, None)

    def dismissed(self) -> None:
        """Nothing to tell: there is one process."""

    def announce(self, says: str) -> None:
        """Tell what the world does."""
        self._write("\n")
        self._line(self._now(), says)

    def pulse(self, queue: Queue, consumers: int, *, is_seen: bool) -> None:
        """Tell how things are, from where the queue stands."""
        unseen = "" if is_seen else " (which nobody can see)"
        told = f"{count(queue.messages, 'order')} in the queue{unseen}, {count(consumers, 'consumer')}"
        self._line(self._now(), f"  · {told}")

    def _line(self, at: datetime, *lines: str) -> None:
        first, *others = lines
        self._write(f"{clock(at):<10}{first}\n")
        self._write("".join(f"{_MARGIN}    {line}\n" for line in others))


def _metric(decision: Decision) -> _Metric | None:
    return next((step for step in decision.working if isinstance(step, _Metric)), None)


def _direction(was: int, becomes: int) -> What:
    if becomes == 0:
        return What.TO_ZERO
    if was == 0:
        return What.WOKE
    return What.GREW if becomes > was else What.SHRANK


def _failing(step: MetricFailed, current: int) -> str:
    told = f"{step.metric} cannot be read, so it does not move from {current}"
    if step.fallback_at is None:
        return f"{told}."
    fallback = count(step.fallback_replicas or 0, "replica")
    return f"{told}; if that lasts until {clock(step.fallback_at)}, its fallback of {fallback} takes over."


def _fell_back(step: MetricFellBack, now: datetime) -> str:
    blind = now - step.failing_since
    return f"unreadable for {number(int(blind.total_seconds() * 1000))} s: its fallback asks for {step.replicas}."


def _why(step: _Metric | None, bound: Bound) -> str:
    told = _asked(step) if step is not None else "no metric was asked"
    return f"{told}." if bound in {Bound.NOTHING, Bound.FALLBACK} else f"{told}; held back by {bound.value}."


def _asked(step: _Metric) -> str:
    if not isinstance(step, MetricAnswered):
        return sentence(step)
    wanted = f"{number(step.calculation.target)} orders for each consumer are wanted"
    if step.current == 0:
        return f"asks for {step.replicas}: {wanted}, and there are orders but no consumer"
    return f"asks for {step.replicas}: {wanted}, there are {number(step.calculation.usage)}"
