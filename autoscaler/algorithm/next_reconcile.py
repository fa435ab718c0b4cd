"""When the next reconcile of an autoscaler is due."""

from datetime import timedelta
from typing import Final

from autoscaler.types.decision import Decision
from autoscaler.types.steps import MetricUnavailableStep, NotAppliedStep

_EXPIRING: Final = (MetricUnavailableStep, NotAppliedStep)


def next_delay(decision: Decision, sync_period: timedelta) -> timedelta:
    """Return the sync period, or less if a failure duration or a pause expires before."""
    delay = sync_period
    for step in decision.steps:
        if isinstance(step, _EXPIRING):
            expiry = step.until if isinstance(step, NotAppliedStep) else step.fallback_at
            if expiry is not None and expiry > decision.at:
                delay = min(delay, expiry - decision.at)
    return delay
