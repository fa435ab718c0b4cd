"""Detects overload: reconciles that start so late that the effective sync period is longer than configured."""

import logging
from datetime import datetime, timedelta
from typing import Final

from autoscaler.telemetry import ControllerTelemetry

log = logging.getLogger(__name__)

_OVERLOAD_THRESHOLD: Final = 0.2
"""The average delay, as a fraction of the sync period, above which the controller is overloaded."""


class OverloadMonitor:
    """Evaluates the delay of reconciles once per sync period."""

    def __init__(self, telemetry: ControllerTelemetry, sync_period: timedelta) -> None:
        self._telemetry = telemetry
        self._sync_period = sync_period
        self._since: datetime | None = None
        self._total_delay = timedelta(0)
        self._reconciles = 0
        self._is_overloaded = False

    def record_delay(self, delay: timedelta, now: datetime) -> None:
        """Record how long after its due time a reconcile starts."""
        delay = max(delay, timedelta(0))
        self._telemetry.reconcile_delay.observe(delay.total_seconds())
        self._total_delay += delay
        self._reconciles += 1
        if self._since is None:
            self._since = now
        elif now - self._since >= self._sync_period:
            self._evaluate(1 + self._total_delay / self._reconciles / self._sync_period)
            self._since, self._total_delay, self._reconciles = now, timedelta(0), 0

    def _evaluate(self, ratio: float) -> None:
        self._telemetry.sync_period_ratio.set(ratio)
        was_overloaded, self._is_overloaded = self._is_overloaded, ratio > 1 + _OVERLOAD_THRESHOLD
        effective = round(self._sync_period.total_seconds() * ratio, 1)
        fields = {"sync_period_ratio": round(ratio, 2), "effective_sync_period_seconds": effective}
        if self._is_overloaded and not was_overloaded:
            log.warning("controller overloaded: reconciles start late", extra=fields)
        elif was_overloaded and not self._is_overloaded:
            log.info("controller no longer overloaded", extra=fields)
