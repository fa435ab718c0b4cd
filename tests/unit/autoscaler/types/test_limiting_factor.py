"""The limiting factor of a decision and the time of its next possible change."""

import pytest

from autoscaler.types.history import Recommendation
from autoscaler.types.limiting_factor import (
    LimitingFactor,
    decisive_step_index,
    limiting_factor,
    next_change,
    winning_step,
)
from autoscaler.types.metric_result import UnavailableCause
from autoscaler.types.steps import (
    LimitStep,
    MetricUnavailableStep,
    NotAppliedReason,
    NotAppliedStep,
    RecommendationStep,
    ResultStep,
    ScalingLimit,
    StabilizationStep,
    TargetStep,
)
from tests.builders import NOW, SETTINGS, ago, later

WINDOW = SETTINGS.downscale_stabilization


@pytest.mark.parametrize(
    "steps", [pytest.param((), id="no steps"), pytest.param((TargetStep(3, 3, 1, 9),), id="no decisive step")]
)
def test_without_a_decisive_step_there_is_no_limiting_factor(steps):
    assert (limiting_factor(steps), next_change(steps, NOW)) == (LimitingFactor.NONE, None)
    assert decisive_step_index(steps) is None


def test_limiting_factor_is_that_of_the_last_step_that_changed_the_result():
    window = StabilizationStep(3, 5, 5, WINDOW, Recommendation(5, ago(10)))
    minimum = LimitStep(5, 6, ScalingLimit.MINIMUM)

    assert limiting_factor((window, LimitStep(5, 5), ResultStep(5, 5))) is LimitingFactor.STABILIZATION_WINDOW
    assert limiting_factor((window, minimum, ResultStep(5, 6))) is LimitingFactor.MIN_REPLICAS
    assert decisive_step_index((window, minimum, ResultStep(5, 6))) == 1


def test_blocked_recommendation_has_no_winning_step():
    assert winning_step(RecommendationStep(3, 3, 1, 1, blocked=True), ()) is None


def test_next_change_is_the_earliest_future_expiry():
    steps = (
        MetricUnavailableStep("q", "why", UnavailableCause.RETRIEVAL, fallback_at=later(60)),
        StabilizationStep(3, 5, 5, WINDOW, Recommendation(5, ago(290))),
        LimitStep(5, 5, ScalingLimit.UP_RATE, until=ago(5)),
        NotAppliedStep(NotAppliedReason.PAUSED, 5, 3, later(30)),
    )

    assert next_change(steps, NOW) == later(10)
    assert next_change(steps, later(10)) == later(30)
    assert next_change(steps, later(60)) is None
