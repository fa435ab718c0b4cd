"""Exponential backoff of autoscalers whose reconcile raised an exception.

Without it, an autoscaler that always fails would be reconciled with every change of its metrics. The delay starts with
the sync period and doubles with every failure in a row. A changed spec ends it, because it may have fixed the cause.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from autoscaler.types.autoscaler import Autoscaler

_MAX_DELAY: Final = timedelta(minutes=5)
_MAX_DOUBLINGS: Final = 16
"""Limits the exponent; the delay has reached its maximum long before."""

_CLOCK_RESOLUTION: Final = 0.001
"""Less time remaining is none: reconciles are scheduled by another clock, and the two may differ by rounding."""


@dataclass(frozen=True, slots=True)
class _Failures:
    count: int
    uid: str
    generation: int
    retry_at: float


class ReconcileBackoff:
    """The autoscalers whose last reconcile failed. Times are seconds of a monotonic clock."""

    def __init__(self, initial_delay: timedelta) -> None:
        self._initial_delay = initial_delay
        self._failures: dict[str, _Failures] = {}

    def record_failure(self, key: str, autoscaler: Autoscaler, now: float) -> timedelta:
        """Record a failed reconcile and return the delay until the next attempt."""
        known = self._current(key, autoscaler)
        count = 1 if known is None else known.count + 1
        factor: int = 2 ** min(count - 1, _MAX_DOUBLINGS)
        delay = min(self._initial_delay * factor, max(self._initial_delay, _MAX_DELAY))
        metadata = autoscaler.metadata
        self._failures[key] = _Failures(count, metadata.uid, metadata.generation, now + delay.total_seconds())
        return delay

    def remaining(self, key: str, autoscaler: Autoscaler, now: float) -> timedelta | None:
        """Return the time until the next attempt; None if the autoscaler may be reconciled now."""
        known = self._current(key, autoscaler)
        seconds = 0.0 if known is None else known.retry_at - now
        return timedelta(seconds=seconds) if seconds > _CLOCK_RESOLUTION else None

    def forget(self, key: str) -> None:
        """Remove an autoscaler after a successful reconcile or its deletion."""
        self._failures.pop(key, None)

    def _current(self, key: str, autoscaler: Autoscaler) -> _Failures | None:
        known, metadata = self._failures.get(key), autoscaler.metadata
        is_current = known is not None and (known.uid, known.generation) == (metadata.uid, metadata.generation)
        return known if is_current else None
