"""Evaluate all metrics of a spec in order, including their fallbacks, and combine their results."""

from collections.abc import Sequence

from autoscaler.algorithm import conditions
from autoscaler.algorithm.decision_builder import DecisionBuilder
from autoscaler.algorithm.fallback import MetricKey, apply_fallback, keep_failure_run, metric_key
from autoscaler.algorithm.metric_context import MetricContext
from autoscaler.algorithm.propose import name_of, propose
from autoscaler.types.metric_result import EffectiveResult, MetricResult, Proposal, UnavailableMetric
from autoscaler.types.observation import Reading
from autoscaler.types.spec import EXTERNAL, ExternalSource, Metric
from autoscaler.types.steps import MetricProposalStep, MetricUnavailableStep, RecommendationStep


def evaluate_metrics(
    metrics: Sequence[Metric], readings: Sequence[Reading], context: MetricContext, builder: DecisionBuilder
) -> list[EffectiveResult]:
    """Return the result of each metric; an unavailable metric does not stop the evaluation."""
    results: list[EffectiveResult] = []
    reported: set[MetricKey] = set()
    for metric, reading in zip(metrics, readings, strict=True):
        result = propose(metric, reading, context)
        source = metric.external
        if source is None or source.fallback is None or metric.type != EXTERNAL:
            _record(metric, result, context, builder)
            results.append(result)
        else:
            results.append(_with_fallback(metric, source, result, context, reported, builder))
    return results


def _with_fallback(
    metric: Metric,
    source: ExternalSource,
    result: MetricResult,
    context: MetricContext,
    reported: set[MetricKey],
    builder: DecisionBuilder,
) -> EffectiveResult:
    """Apply the fallback. Two entries with the same metric share a failure run, and its events are sent once."""
    is_healthy = isinstance(result, Proposal) and not builder.failure_runs  # the common case: skip computing the key
    key = ("", "") if is_healthy else metric_key(source.metric)
    run = builder.failure_runs.get(key)
    if not context.gates.HPAExternalMetricFallback:
        _record(metric, result, context, builder)
        return keep_failure_run(result, run)
    evaluation = apply_fallback(source, result, run, context)
    if evaluation.events and key not in reported:
        builder.events.extend(evaluation.events)
        reported.add(key)
    if evaluation.step is not None:
        builder.steps.append(evaluation.step)
    else:
        _record(metric, result, context, builder)
    return evaluation.result


def _record(metric: Metric, result: MetricResult, context: MetricContext, builder: DecisionBuilder) -> None:
    """Record the step. Like upstream, an unavailable metric sends its event in every reconcile."""
    name = name_of(metric)
    if isinstance(result, Proposal):
        replicas, calculation = result.replicas, result.calculation
        step = MetricProposalStep(name, replicas, context.target.replicas, context.tolerance, calculation)
        builder.steps.append(step)
    else:
        builder.events.append(conditions.warning_event(result.reason, result.message))
        builder.steps.append(MetricUnavailableStep(name, result.message, result.cause, result.failure))


def combine(results: Sequence[EffectiveResult], current: int) -> RecommendationStep:
    """Return the highest proposal. Any unavailable metric blocks scaling down; no proposal at all blocks any change.

    Like upstream, any later proposal replaces one of 0, so that the condition names the last of the metrics at 0.
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
    """Return upstream's error for unavailable metrics, which contains only the error of the first of them."""
    counts = f"{recommendation.unavailable} invalid out of {recommendation.metrics}"
    return f"invalid metrics ({counts}), first error is: {first.error}"
