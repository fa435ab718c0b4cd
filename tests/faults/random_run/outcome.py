"""The result of one run, and its printed form."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.faults.random_run.actions import Action, is_fault
from tests.faults.random_run.invariants import CheckResult, Violation
from tests.faults.random_run.record import Record, ScaleWrite, StatusWrite


@dataclass
class Outcome:
    """What was done in one run, what was written, and which invariants were violated."""

    seed: int
    minutes: float
    actions: Sequence[Action]
    record: Record
    result: CheckResult

    @property
    def violations(self) -> list[Violation]:
        return self.result.violations

    def trace(self, seconds: float = 180.0) -> Iterator[str]:
        """Yield the first violation, the actions, and the writes before it."""
        for violation in self.violations[:5]:
            yield f"seed {self.seed}: {violation}"
        for action in self.actions:
            yield f"  {action}"
        first = min((violation.at for violation in self.violations), default=0.0)
        for write in self.record.writes:
            if first - seconds <= write.at <= first + 1:
                yield f"  {write}"


@dataclass
class Total:
    """The sum of several runs."""

    seeds: list[int] = field(default_factory=list)
    minutes: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    longest_delay: float = 0.0
    violations: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.seeds.append(outcome.seed)
        self.minutes += outcome.minutes
        self.faults.update(action.kind for action in outcome.actions if is_fault(action))
        self.changes.update(action.kind for action in outcome.actions if not is_fault(action))
        self.writes.update(type(write).__name__ for write in outcome.record.writes)
        self.checked += outcome.result.checked
        self.longest_delay = max(self.longest_delay, outcome.result.longest_delay)
        self.violations += [f"seed {outcome.seed}: {violation}" for violation in outcome.violations]

    def lines(self) -> Iterator[str]:
        """Yield the table."""
        seeds = f"{len(self.seeds)}: {min(self.seeds)} to {max(self.seeds)}" if len(self.seeds) > 1 else self.seeds[0]
        yield _row("seeds", str(seeds))
        yield _row("minutes", f"{self.minutes:.1f}")
        yield _row("faults injected", _counts(self.faults))
        yield _row("changes by other clients", _counts(self.changes))
        yield _row("writes checked", f"{self.writes[ScaleWrite.__name__] + self.writes[StatusWrite.__name__]}")
        yield _row("writes", _counts(self.writes))
        yield _row("checks", _counts(self.checked))
        yield _row("longest delay", f"{self.longest_delay:.1f} s")
        yield _row("violations", str(len(self.violations)))
        yield from self.violations[:20]


def _row(name: str, text: str) -> str:
    return f"{name:26}{text}"


def _counts(counts: Counter[str]) -> str:
    parts = ", ".join(f"{number} {name}" for name, number in counts.most_common())
    return f"{counts.total()}: {parts}" if counts else "0"
