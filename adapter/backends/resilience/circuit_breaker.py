"""A circuit breaker. Pure: the current time is an argument.

closed ── ``failure_threshold`` failures ──▶ open ── ``open_duration`` elapsed ──▶ half-open ── success ──▶ closed
                                              ▲                                      │
                                              └────── failure, duration doubled ─────┘
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum


class CircuitState(StrEnum):
    """Which requests the circuit breaker allows."""

    CLOSED = "closed"
    """All requests."""

    OPEN = "open"
    """No requests."""

    HALF_OPEN = "half open"
    """One request at a time, the probe."""


@dataclass(slots=True)
class CircuitBreaker:
    """Call ``allows`` before a request, then exactly one of ``succeeded``, ``failed`` and ``abandoned`` after it."""

    failure_threshold: int
    """How many different queries must fail in a row; a single bad query never opens the circuit."""

    open_duration: timedelta
    """How long the circuit stays open at first; doubled after each failed probe."""

    max_open_duration: timedelta

    _failed_queries: set[int] = field(default_factory=set)
    """Hashes of their keys, because a key can be long."""

    _times_opened: int = 0
    _open_until: datetime | None = None
    _probe_started: datetime | None = None

    def state(self, now: datetime) -> CircuitState:
        if self._open_until is None:
            return CircuitState.CLOSED
        return CircuitState.OPEN if now < self._open_until else CircuitState.HALF_OPEN

    def allows(self, now: datetime, *, is_probe: bool = False) -> bool:
        """Return whether a request may be sent now. In the half-open state the first caller becomes the probe.

        ``is_probe``: treat a closed circuit as half-open.
        """
        state = self.state(now)
        if state is CircuitState.OPEN or (state is CircuitState.CLOSED and not is_probe):
            return state is CircuitState.CLOSED
        # A probe whose result is never reported must not block the circuit for ever.
        if self._probe_started is not None and now < self._probe_started + self.max_open_duration:
            return False
        self._probe_started = now
        return True

    def succeeded(self) -> None:
        """Record a response: close the circuit."""
        self._failed_queries.clear()
        self._times_opened = 0
        self._open_until = self._probe_started = None

    def failed(self, now: datetime, query_key: str) -> None:
        """Record a failure that affects all queries of the backend."""
        if len(self._failed_queries) < self.failure_threshold:
            self._failed_queries.add(hash(query_key))
        was_probe, self._probe_started = self._probe_started is not None, None
        if was_probe or (self._open_until is None and len(self._failed_queries) >= self.failure_threshold):
            self._open_until = now + min(self.open_duration * 2**self._times_opened, self.max_open_duration)
            self._times_opened = min(self._times_opened + 1, 32)

    def abandoned(self) -> None:
        """Record a request that ended without information about the backend: the next request may be the probe."""
        self._probe_started = None
