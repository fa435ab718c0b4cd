"""Combine the results of all metrics into one recommendation."""

from collections.abc import Sequence

from autoscaler.types.metric_result import EffectiveResult, UnavailableMetric
from autoscaler.types.steps import RecommendationStep


def combine(results: Sequence[EffectiveResult], current: int) -> RecommendationStep:
    """Return the highest proposal. Any unavailable metric blocks scaling down; no proposal at all blocks any change.

    Like upstream, a proposal of 0 is replaced by any later proposal, which determines the metric that is named.
    """
    replicas, winner, unavailable = 0, None, 0
    for index, result in enumerate(results):
        if isinstance(result, UnavailableMetric):
            unavailable += 1
        elif replicas == 0 or result.replicas > replicas:
            replicas, winner = result.replicas, index
    if winner is None or (unavailable and replicas < current):
        return RecommendationStep(current, current, len(results), unavailable, blocked=True)
    return RecommendationStep(current, max(replicas, 0), len(results), unavailable, winner)


def first_unavailable(results: Sequence[EffectiveResult]) -> UnavailableMetric | None:
    """Return the unavailable metric that conditions and errors name."""
    return next((result for result in results if isinstance(result, UnavailableMetric)), None)


def combined_error(first: UnavailableMetric, recommendation: RecommendationStep) -> str:
    """Return upstream's error for unavailable metrics, which contains only the first one's error."""
    counts = f"{recommendation.unavailable} invalid out of {recommendation.metrics}"
    return f"invalid metrics ({counts}), first error is: {first.error}"
