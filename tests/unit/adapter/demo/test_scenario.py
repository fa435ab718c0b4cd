"""The phases of the scenario."""

from datetime import timedelta
from itertools import pairwise
from random import Random

from adapter.demo.scenario import END, PHASES, phase

RANDOM = Random(1)  # noqa: S311 - a simulation


def test_phases_start_in_order():
    starts = [phase(index, RANDOM).start for index in range(len(PHASES) + 5)]

    assert starts[0] == timedelta()
    assert all(one < other for one, other in pairwise(starts))
    assert starts[len(PHASES)] == END


def test_outage_lasts_longer_than_failure_duration_seconds():
    outage = [one for one in PHASES if not one.backend_is_up]
    recovery = next(one for one in PHASES if one.start > outage[-1].start)

    assert recovery.backend_is_up
    assert recovery.start - outage[0].start > timedelta(seconds=180)


def test_shop_is_closed_long_enough_to_scale_to_zero():
    closing = next(one for one in PHASES if one.orders_per_second == 0)
    opening = PHASES[PHASES.index(closing) + 1]

    assert opening.orders_per_second > 0
    assert opening.start - closing.start > timedelta(minutes=3)


def test_random_phases_have_no_outage():
    assert all(phase(len(PHASES) + index, RANDOM).backend_is_up for index in range(20))
