"""Exponential backoff of failing autoscalers."""

from datetime import timedelta

from autoscaler.controller.backoff import ReconcileBackoff
from tests.builders import make_autoscaler

WEB = make_autoscaler(generation=1)


def backoff(seconds=15):
    return ReconcileBackoff(timedelta(seconds=seconds))


def test_delay_doubles_with_every_failure_up_to_five_minutes():
    failing = backoff()

    delays = [failing.record_failure("shop/web", WEB, 0).total_seconds() for _ in range(60)]

    assert delays[:7] == [15, 30, 60, 120, 240, 300, 300]
    assert delays[-1] == 300


def test_delay_is_at_least_the_sync_period():
    assert backoff(600).record_failure("shop/web", WEB, 0) == timedelta(minutes=10)


def test_autoscaler_is_not_reconciled_before_the_delay_has_passed():
    failing = backoff()
    failing.record_failure("shop/web", WEB, 100)

    assert failing.remaining("shop/web", WEB, 105) == timedelta(seconds=10)
    assert failing.remaining("shop/web", WEB, 115) is None
    assert failing.remaining("shop/api", WEB, 105) is None


def test_remaining_time_below_the_resolution_of_the_clock_is_none():
    failing = backoff()
    failing.record_failure("shop/web", WEB, 100)

    assert failing.remaining("shop/web", WEB, 115 - 1e-9) is None


def test_changed_spec_ends_the_backoff():
    failing = backoff()
    failing.record_failure("shop/web", WEB, 0)
    changed = make_autoscaler(generation=2)

    assert failing.remaining("shop/web", changed, 1) is None
    assert failing.record_failure("shop/web", changed, 1) == timedelta(seconds=15)


def test_success_ends_the_backoff():
    failing = backoff()
    failing.record_failure("shop/web", WEB, 0)
    failing.forget("shop/web")

    assert failing.remaining("shop/web", WEB, 1) is None
    assert failing.record_failure("shop/web", WEB, 1) == timedelta(seconds=15)
