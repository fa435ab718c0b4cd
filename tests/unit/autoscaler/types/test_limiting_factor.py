"""Reading the working backwards, also where there is little to read."""

import pytest

from autoscaler.types.history import Recommendation
from autoscaler.types.limiting_factor import Bound, bound_by, next_change, winning_step
from autoscaler.types.metric_result import Trouble
from autoscaler.types.steps import (
    Combined,
    Concluded,
    Held,
    Hold,
    Limit,
    Limited,
    MetricFailed,
    Stabilized,
    TargetSeen,
)
from tests.builders import NOW, SETTINGS, ago, later

WINDOW = SETTINGS.downscale_stabilization


@pytest.mark.parametrize(
    "working", [pytest.param((), id="no step at all"), pytest.param((TargetSeen(3, 3, 1, 9),), id="no step that binds")]
)
def test_without_a_step_that_binds_nothing_did(working):
    assert (bound_by(working), next_change(working, NOW)) == (Bound.NOTHING, None)


def test_the_last_step_that_changed_the_answer_bound_it():
    window = Stabilized(3, 5, 5, WINDOW, Recommendation(5, ago(10)))
    minimum = Limited(5, 6, Limit.MINIMUM)

    assert bound_by((window, Limited(5, 5), Concluded(5, 5))) is Bound.WINDOW
    assert bound_by((window, minimum, Concluded(5, 6))) is Bound.MINIMUM


def test_where_nothing_is_known_no_metric_has_won():
    assert winning_step(Combined(3, 3, 1, 1, blocked=True), ()) is None


def test_the_first_moment_that_is_still_to_come_is_the_next_change():
    working = (
        MetricFailed("q", "why", Trouble.RETRIEVAL, fallback_at=later(60)),
        Stabilized(3, 5, 5, WINDOW, Recommendation(5, ago(290))),
        Limited(5, 5, Limit.UP_RATE, until=ago(5)),
        Held(Hold.PAUSED, 5, 3, later(30)),
    )

    assert next_change(working, NOW) == later(10)
    assert next_change(working, later(10)) == later(30)
    assert next_change(working, later(60)) is None
