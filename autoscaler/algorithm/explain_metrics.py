"""Render the steps of single metrics as text."""

from autoscaler.algorithm.formatting import count, decimal, time_of_day
from autoscaler.types.metric_result import Calculation, CalculationRule
from autoscaler.types.spec import USE_MAX, USE_MIN
from autoscaler.types.steps import MetricFallbackStep, MetricProposalStep, MetricUnavailableStep
from autoscaler.values.arithmetic import MIN_INT64


def explain_proposal(step: MetricProposalStep) -> str:
    """Return the metric's proposal, its value and target, and how the proposal was calculated."""
    proposal = f"{step.metric}: proposes {count(step.replicas, 'replica')}"
    if step.calculation.rule in (CalculationRule.WITHIN_TOLERANCE, CalculationRule.DIRECTION_REVERSED):
        proposal = f"{step.metric}: proposes no change from {step.replicas}"
    return f"{proposal}: {_value(step.calculation)}; {_calculation(step)}"


def _value(calculation: Calculation) -> str:
    if calculation.utilization is not None:
        return f"utilization {calculation.utilization} %, target {calculation.target} %"
    target = decimal(calculation.target)
    if calculation.usage == MIN_INT64:  # upstream's average over 0 pods: show the total instead
        return f"total {decimal(round(calculation.ratio * calculation.target))}, target {target} per replica"
    if calculation.rule is CalculationRule.TOTAL:
        return f"average {decimal(calculation.usage)} per replica, target {target}"
    return f"value {decimal(calculation.usage)}, target {target}"


def _calculation(step: MetricProposalStep) -> str:
    calculation = step.calculation
    ratio = calculation.ratio if calculation.refined_ratio is None else calculation.refined_ratio
    tolerance = f"the tolerance of {1 - step.tolerance.down:.4g} to {1 + step.tolerance.up:.4g}"
    match calculation.rule:
        case CalculationRule.WITHIN_TOLERANCE:
            text = f"ratio {ratio:.4g} is within {tolerance}"
        case CalculationRule.READY_PODS | CalculationRule.ASSUMED_PODS:
            text = f"ratio {ratio:.4g}, outside {tolerance}, times {count(calculation.multiplier or 0, 'pod')}"
        case CalculationRule.DIRECTION_REVERSED:
            text = f"ratio {ratio:.4g} with assumed values, outside {tolerance}, reverses the direction"
        case CalculationRule.FROM_ZERO:
            text = f"ratio {ratio:.4g} rounded up, no pods"
        case _ if calculation.usage == MIN_INT64:  # no pods: there is no ratio to compare with the tolerance
            text = f"total / {decimal(calculation.target)}"
        case _:
            text = f"ratio {ratio:.4g}, outside {tolerance}: total / {decimal(calculation.target)}"
    return text + _assumptions(calculation)


def _assumptions(calculation: Calculation) -> str:
    """Return the values that were assumed for pods without a metric, if any."""
    if calculation.refined_ratio is None or calculation.pods is None:
        return ""
    missing, unready = len(calculation.pods.missing), len(calculation.pods.unready)
    if calculation.ratio < 1:
        return f" ({count(missing, 'pod')} without a metric assumed at full usage)"
    return f" ({count(missing + unready, 'pod')} without a metric assumed at 0)"


def explain_unavailable(step: MetricUnavailableStep) -> str:
    """Return why a metric is unavailable, since when, and when its fallback becomes active."""
    failure = f" ({step.failure.value})" if step.failure is not None else ""
    text = f"{step.metric}: unavailable{failure}: {step.message}"
    if step.failing_since is None or step.fallback_at is None:
        return text
    fallback = count(step.fallback_replicas or 0, "replica")
    since, due = time_of_day(step.failing_since), time_of_day(step.fallback_at)
    return f"{text}; failing since {since}, fallback of {fallback} at {due}"


def explain_fallback(step: MetricFallbackStep) -> str:
    """Return the proposal of a fallback and how it was determined."""
    replicas = count(step.replicas, "replica")
    text = f"{step.metric}: fallback proposes {replicas}: failing since {time_of_day(step.failing_since)}"
    if step.strategy in (USE_MAX, USE_MIN):
        which = "larger" if step.strategy == USE_MAX else "smaller"
        return f"{text}; {step.strategy}: the {which} of {step.configured} and the {step.captured} at activation"
    return text
