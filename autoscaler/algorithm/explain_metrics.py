"""Puts what single metrics said into sentences."""

from autoscaler.algorithm.formatting import clock, count, number
from autoscaler.types.metric_result import Calculation, Rule
from autoscaler.types.spec import USE_MAX, USE_MIN
from autoscaler.types.steps import MetricAnswered, MetricFailed, MetricFellBack
from autoscaler.values.arithmetic import MIN_INT64


def tell_answer(step: MetricAnswered) -> str:
    """Say what a metric asks for, with the numbers that lead there."""
    calculation = step.calculation
    told = f"{step.metric} asks for {step.replicas}"
    if calculation.rule in (Rule.WITHIN_TOLERANCE, Rule.WOULD_REVERSE):
        told = f"{step.metric} asks for no change from {step.replicas}"
    return f"{told}: {_measured(calculation)}, {_reckoned(step)}"


def _measured(calculation: Calculation) -> str:
    if calculation.utilization is not None:
        return f"{calculation.utilization} % of requests used where {calculation.target} % is wanted"
    if calculation.usage == MIN_INT64:  # an average over no pods: status shows that number, as upstream does
        total = round(calculation.ratio * calculation.target)
        return f"{number(total)} in all where {number(calculation.target)} for each pod is wanted"
    return f"{number(calculation.usage)} where {number(calculation.target)} is wanted"


def _reckoned(step: MetricAnswered) -> str:
    calculation = step.calculation
    ratio = calculation.ratio if calculation.refined_ratio is None else calculation.refined_ratio
    match calculation.rule:
        case Rule.WITHIN_TOLERANCE:
            least, most = 1 - step.tolerance.down, 1 + step.tolerance.up
            told = f"and a ratio of {ratio:.4g} is tolerated from {least:.4g} to {most:.4g}"
        case Rule.READY_PODS | Rule.ASSUMED_PODS:
            told = f"so {ratio:.4g} times {count(calculation.multiplier or 0, 'pod')}"
        case Rule.WOULD_REVERSE:
            told = f"but {ratio:.4g} with assumptions, which would turn the direction round"
        case Rule.FROM_ZERO:
            told = f"so {ratio:.4g} rounded up, as there are no pods yet"
        case _:
            told = f"so the total divided by {number(calculation.target)}"
    return told + _assumptions(calculation)


def _assumptions(calculation: Calculation) -> str:
    """Say what was assumed of pods without a number, where that changed the ratio."""
    if calculation.refined_ratio is None or calculation.pods is None:
        return ""
    missing, unready = len(calculation.pods.missing), len(calculation.pods.unready)
    if calculation.ratio < 1:
        return f" ({count(missing, 'pod')} without a number assumed busy)"
    return f" ({count(missing + unready, 'pod')} without a number assumed idle)"


def tell_failure(step: MetricFailed) -> str:
    """Say why a metric has no say, since when, and when its fallback will speak."""
    why = f" ({step.failure.value})" if step.failure is not None else ""
    told = f"{step.metric} has no say{why}: {step.message}"
    if step.failing_since is None or step.fallback_at is None:
        return told
    return (
        f"{told}; failing since {clock(step.failing_since)}, "
        f"its fallback of {count(step.fallback_replicas or 0, 'replica')} is due at {clock(step.fallback_at)}"
    )


def tell_fallback(step: MetricFellBack) -> str:
    """Say what a fallback proposes, and why that many."""
    told = f"{step.metric} is unreadable since {clock(step.failing_since)}, so its fallback asks for {step.replicas}"
    if step.strategy == USE_MAX:
        return f"{told}: the larger of {step.configured} and the {step.captured} there were then"
    if step.strategy == USE_MIN:
        return f"{told}: the smaller of {step.configured} and the {step.captured} there were then"
    return told
