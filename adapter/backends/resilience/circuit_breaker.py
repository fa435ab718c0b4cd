"""A circuit breaker: after failures in a row nobody asks for a while, then one may try. Pure; time is an argument.

closed ── ``failures`` in a row ──▶ open ── ``rest`` is over ──▶ half open ── it works ──▶ closed
                                     ▲                             │
                                     └──────── it fails ───────────┘  and rests twice as long, up to ``longest``
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum


class State(StrEnum):
    """What the breaker lets through."""

    CLOSED = "closed"
    """Everything."""

    OPEN = "open"
    """Nothing."""

    HALF_OPEN = "half open"
    """One, and the others learn from it."""


@dataclass(slots=True)
class CircuitBreaker:
    """Who may ask now. Say ``admits`` before, and one of ``succeeded``, ``failed`` and ``abandoned`` after."""

    failures: int
    """How many different questions must fail in a row to open it: one bad question alone never does."""

    rest: timedelta
    """How long it stays open at first."""

    longest: timedelta
    """How long it stays open at most, however often the trial fails."""

    _in_a_row: set[str] = field(default_factory=set)
    _openings: int = 0
    _until: datetime | None = None
    _trial_since: datetime | None = None

    def state(self, now: datetime) -> State:
        """Say which it is."""
        if self._until is None:
            return State.CLOSED
        return State.OPEN if now < self._until else State.HALF_OPEN

    def admits(self, now: datetime) -> bool:
        """Say whether one may ask now; in half open the first may, and is the trial."""
        state = self.state(now)
        if state is not State.HALF_OPEN:
            return state is State.CLOSED
        # A trial that never reported back must not keep the door shut for ever.
        if self._trial_since is not None and now < self._trial_since + self.longest:
            return False
        self._trial_since = now
        return True

    def succeeded(self) -> None:
        """Note an answer: all is well at once."""
        self._in_a_row.clear()
        self._openings = 0
        self._until = self._trial_since = None

    def failed(self, now: datetime, question: str) -> None:
        """Note that there was no answer."""
        if len(self._in_a_row) < self.failures:
            self._in_a_row.add(question)
        was_trial, self._trial_since = self._trial_since is not None, None
        if was_trial or (self._until is None and len(self._in_a_row) >= self.failures):
            self._until = now + min(self.rest * 2**self._openings, self.longest)
            self._openings = min(self._openings + 1, 32)

    def abandoned(self) -> None:
        """Note that the question was withdrawn: nothing was learned, and the next may try."""
        self._trial_since = None
