"""The delay until the next reconcile: the sync period, or the end of a failure duration or of a pause."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from autoscaler.algorithm.next_reconcile import next_delay
from autoscaler.types.metric_result import UnavailableCause
from autoscaler.types.steps import MetricUnavailableStep, NotAppliedReason, NotAppliedStep
from tests.builders import ago, decide_once, later

PERIOD = timedelta(seconds=15)


def failing(fallback_at):
    return MetricUnavailableStep("queue", "failed", UnavailableCause.RETRIEVAL, fallback_at=fallback_at)


def paused(until):
    return NotAppliedStep(NotAppliedReason.PAUSED, 3, 3, until)


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        ((), 15),
        ((failing(later(5)),), 5),
        ((failing(later(50)),), 15),
        ((failing(None), paused(None)), 15),
        ((paused(later(7)), failing(later(4))), 4),
        ((paused(ago(1)),), 15),
    ],
)
def test_delay_ends_with_the_first_expiry(steps, seconds):
    assert next_delay(replace(decide_once(), steps=steps), PERIOD) == timedelta(seconds=seconds)
