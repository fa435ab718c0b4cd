"""Whether there is more to do than time: how late visits begin, and by how much that stretches everybody's period."""

import logging
from datetime import datetime, timedelta
from typing import Final

from autoscaler.telemetry import ControllerTelemetry

log = logging.getLogger(__name__)

_TOO_LATE: Final = 0.2
"""Visits that begin, on average, later than this part of a period mean overload."""


class Load:
    """Judges once in a period how late visits were."""

    def __init__(self, telemetry: ControllerTelemetry, period: timedelta) -> None:
        self._telemetry = telemetry
        self._period = period
        self._since: datetime | None = None
        self._late = timedelta(0)
        self._visits = 0
        self._is_stretched = False

    def began(self, late: timedelta, now: datetime) -> None:
        """Take in how late a visit begins."""
        late = max(late, timedelta(0))
        self._telemetry.lateness.observe(late.total_seconds())
        self._late += late
        self._visits += 1
        if self._since is None:
            self._since = now
        elif now - self._since >= self._period:
            self._judge(1 + self._late / self._visits / self._period)
            self._since, self._late, self._visits = now, timedelta(0), 0

    def _judge(self, stretch: float) -> None:
        self._telemetry.stretch.set(stretch)
        was, self._is_stretched = self._is_stretched, stretch > 1 + _TOO_LATE
        facts = {"stretch": round(stretch, 2), "period_seconds": round(self._period.total_seconds() * stretch, 1)}
        if self._is_stretched and not was:
            log.warning("overloaded: every autoscaler is looked at less often", extra=facts)
        elif was and not self._is_stretched:
            log.info("no longer overloaded", extra=facts)
