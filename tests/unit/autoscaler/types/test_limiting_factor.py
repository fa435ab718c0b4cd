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
from autoscaler.types.metric_result import Calculation, CalculationRule, Tolerance, UnavailableCause
from autoscaler.types.steps import (
    LimitStep,
    MetricFallbackStep,
    MetricProposalStep,
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


FALLBACK = MetricFallbackStep("queue", 5, "no answer", NOW, "Static", 5, 3)
UNAVAILABLE = MetricUnavailableStep("queue", "no answer", UnavailableCause.RETRIEVAL)


def proposal(replicas: int, rule: CalculationRule) -> MetricProposalStep:
    return MetricProposalStep("web", replicas, 3, Tolerance(0.1, 0.1), Calculation(replicas, rule, 1000, 1000, 1.0))


@pytest.mark.parametrize(
    ("metrics", "recommendation", "factor", "decisive"),
    [
        pytest.param(
            (proposal(2, CalculationRule.READY_PODS), FALLBACK),
            RecommendationStep(3, 5, 2, 0, winner=1),
            LimitingFactor.FALLBACK,
            FALLBACK,
            id="fallback",
        ),
        pytest.param(
            (proposal(3, CalculationRule.WITHIN_TOLERANCE), proposal(2, CalculationRule.READY_PODS)),
            RecommendationStep(3, 3, 2, 0, winner=0),
            LimitingFactor.TOLERANCE,
            proposal(3, CalculationRule.WITHIN_TOLERANCE),
            id="tolerance",
        ),
        pytest.param(
            (FALLBACK, proposal(7, CalculationRule.READY_PODS)),
            RecommendationStep(3, 7, 2, 0, winner=1),
            LimitingFactor.NONE,
            proposal(7, CalculationRule.READY_PODS),
            id="follows the metric",
        ),
        pytest.param(
            (proposal(2, CalculationRule.READY_PODS), UNAVAILABLE),
            RecommendationStep(3, 3, 2, 1, blocked=True),
            LimitingFactor.METRICS_UNAVAILABLE,
            UNAVAILABLE,
            id="unavailable metric",
        ),
    ],
)
def test_decisive_step_is_the_step_of_the_metric_that_the_limiting_factor_names(
    metrics, recommendation, factor, decisive
):
    steps = (TargetStep(3, 3, 1, 9), *metrics, recommendation, LimitStep(5, 5), ResultStep(3, 5))
    index = decisive_step_index(steps)

    assert limiting_factor(steps) is factor
    assert index is not None
    assert steps[index] == decisive


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
