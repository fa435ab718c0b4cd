"""Invariants of every run, checked on its record. Pure: nothing here knows how the record was made.

Writers: a process writes a scale or status only while the API server stores it as the holder of the lease.
Permission: a scale is written only for an autoscaler that existed, was active and had no conflict, within the stated
bound before the write; its replicas are within the bounds of that autoscaler. The rates are in `rates`.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from tests.faults.random_run.rates import exceeded_rate
from tests.faults.random_run.record import LeaseWrite, Record, ScaleWrite, SpecHistory, SpecWrite, StatusWrite


@dataclass(frozen=True)
class Limits:
    """The stated bounds, in seconds."""

    stale: float
    """How old the objects of a decision may be: the bound of the controller, and the time for the write itself."""

    without_faults: float
    """The same without faults."""

    recovery: float = 240.0
    """How long before a write no fault may have been active, for ``without_faults`` to apply."""


@dataclass(frozen=True)
class Violation:
    """A write that breaks an invariant."""

    at: float
    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.at:.3f} {self.invariant}: {self.text}"


@dataclass
class CheckResult:
    """The violations of a run and what was checked."""

    violations: list[Violation] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    """The number of checks by name, to show that they were not empty."""

    longest_delay: float = 0.0
    """The longest time for which a written scale was no longer permitted when it was written."""


def check(record: Record, limits: Limits) -> CheckResult:
    """Check all invariants on a record."""
    result = CheckResult()
    _check_writers(record, result)
    history = SpecHistory(record.writes)
    for index, write in enumerate(record.writes):
        if isinstance(write, ScaleWrite):
            is_without_faults = not record.has_fault(write.at - limits.recovery, write.at)
            age = limits.without_faults if is_without_faults else limits.stale
            result.checked["without_faults" if is_without_faults else "faulty"] += 1
            if _check_permission(write, history, age, result):
                _check_rate(record, index, history, age, result)
    return result


def _check_writers(record: Record, result: CheckResult) -> None:
    """Check that each write was made by the holder of the lease."""
    holder = ""
    for write in record.writes:
        if isinstance(write, LeaseWrite):
            holder = "" if write.is_released else write.writer
        elif isinstance(write, ScaleWrite | StatusWrite):
            result.checked["writer"] += 1
            if write.writer != holder:
                text = f"{write.writer} wrote {write}, but the lease was held by {holder or 'no process'}"
                result.violations.append(Violation(write.at, "one writer", text))


def _check_permission(write: ScaleWrite, history: SpecHistory, age: float, result: CheckResult) -> bool:
    """Check existence, mode, conflicts and bounds; return whether the write was permitted."""
    states = history.owners_within(write.target, write.at - age, write.at)
    permitted = [owners[0] for _, owners in states if len(owners) == 1 and is_active(owners[0], write.at)]
    result.checked["permission"] += 1
    if not permitted:
        text = f"{write} although no autoscaler was active for {write.target} within {age:g} s"
        result.violations.append(Violation(write.at, "deleted, paused or in conflict", text))
        return False
    if not any(_is_within_bounds(owner, write.replicas) for owner in permitted):
        bounds = ", ".join(f"{low} to {high}" for low, high in map(bounds_of, permitted))
        text = f"{write} is outside the bounds of {write.target}: {bounds}"
        result.violations.append(Violation(write.at, "bounds", text))
        return False
    result.longest_delay = max(result.longest_delay, _delay(write, states))
    return True


def _delay(write: ScaleWrite, states: list[tuple[float, list[SpecWrite]]]) -> float:
    """Return for how long the write was no longer permitted; 0 if it was permitted when it was written."""
    ended = write.at
    for start, owners in reversed(states):
        if len(owners) == 1 and is_active(owners[0], write.at) and _is_within_bounds(owners[0], write.replicas):
            break
        ended = start
    return write.at - ended


def _check_rate(record: Record, index: int, history: SpecHistory, age: float, result: CheckResult) -> None:
    exceeded = exceeded_rate(record.writes, index, history, age)
    if exceeded is None:
        return
    result.checked["rate"] += 1
    if exceeded:
        result.violations.append(Violation(record.writes[index].at, "rate", exceeded))


def is_active(autoscaler: SpecWrite, now: float) -> bool:
    """Return whether an autoscaler scales its target at a time."""
    spec = autoscaler.spec or {}
    mode = spec.get("mode") or "Active"
    until = spec.get("pausedUntil")
    if mode == "Paused" and until:
        return datetime.fromisoformat(until).timestamp() <= now
    return bool(mode == "Active")


def bounds_of(autoscaler: SpecWrite) -> tuple[int, int]:
    """Return minReplicas and maxReplicas."""
    spec = autoscaler.spec or {}
    minimum = spec.get("minReplicas")
    return (1 if minimum is None else int(minimum)), int(spec["maxReplicas"])


def _is_within_bounds(autoscaler: SpecWrite, replicas: int) -> bool:
    low, high = bounds_of(autoscaler)
    return low <= replicas <= high
