"""Render the steps of single metrics as text."""

import math
from datetime import datetime
from fractions import Fraction

from autoscaler.algorithm.formatting import count, decimal, failure_cause, time_near
from autoscaler.types.metric_result import Calculation, CalculationRule, Tolerance
from autoscaler.types.spec import USE_MAX, USE_MIN
from autoscaler.types.steps import MetricFallbackStep, MetricProposalStep, MetricUnavailableStep
from autoscaler.values.arithmetic import MIN_INT64


def explain_proposal(step: MetricProposalStep) -> str:
    """Return the metric's proposal, its value and target, and how the proposal was calculated."""
    proposal = f"{step.metric}: proposes {count(step.replicas, 'replica')}"
    if step.calculation.rule in (CalculationRule.WITHIN_TOLERANCE, CalculationRule.DIRECTION_REVERSED):
        proposal = f"{step.metric}: proposes no change from {step.replicas}"
    return f"{proposal}: {_value(step.calculation)}: {_result(step)}"


def _value(calculation: Calculation) -> str:
    """Return the value and the target; with assumed values for pods without a metric, the value that they yield."""
    target = _number(calculation, calculation.target)
    if calculation.usage == MIN_INT64 and calculation.total is not None:  # upstream's average over 0 pods
        return f"total {decimal(calculation.total)}, target {target} per replica"
    if calculation.total is not None:
        return f"{decimal(calculation.usage)} per replica, target {target}"
    if calculation.utilization is not None:
        text = f"utilization {calculation.utilization} %, target {target} %"
    else:
        text = f"value {decimal(calculation.usage)}, target {target}"
    return text + _assumed_value(calculation)


def _assumed_value(calculation: Calculation) -> str:
    if calculation.refined_ratio is None or calculation.pods is None or calculation.ratio == 1:
        return ""
    pods = len(calculation.pods.missing) + (len(calculation.pods.unready) if calculation.ratio > 1 else 0)
    assumed = "full usage" if calculation.ratio < 1 else "0"
    unit = "" if calculation.utilization is None else " %"
    value = _number(calculation, _dividend(calculation))
    return f"; {value}{unit} with {count(pods, 'pod')} without a metric assumed at {assumed}"


def _result(step: MetricProposalStep) -> str:
    """Return the arithmetic of a proposal, and how its ratio relates to the tolerance."""
    calculation, tolerance = step.calculation, step.tolerance
    ratio = _ratio(calculation, tolerance)
    range_of_tolerance = f"the tolerance of {1 - tolerance.down:.4g} to {1 + tolerance.up:.4g}"
    match calculation.rule:
        case CalculationRule.WITHIN_TOLERANCE:
            return f"{_quotient(calculation)} = {ratio} is within {range_of_tolerance}"
        case CalculationRule.DIRECTION_REVERSED:
            text = f"{_quotient(calculation)} = {ratio} is outside {range_of_tolerance}"
            return f"{text} and reverses the direction"
        case CalculationRule.FROM_ZERO:
            return f"{_rounded_up(calculation)}, no pods"
        case _ if calculation.usage == MIN_INT64:  # no pods: there is no ratio to compare with the tolerance
            return _rounded_up(calculation)
        case _:
            return f"{_rounded_up(calculation)}; ratio {ratio} is outside {range_of_tolerance}"


def _ratio(calculation: Calculation, tolerance: Tolerance) -> str:
    """Return the ratio with four digits, or with all digits if four would be on the other side of the tolerance."""
    ratio = calculation.ratio if calculation.refined_ratio is None else calculation.refined_ratio
    text = f"{ratio:.4g}"
    return text if tolerance.covers(float(text)) == tolerance.covers(ratio) else repr(ratio)


def _dividend(calculation: Calculation) -> int:
    """Return the number that was divided by the target: in milli, or in percent for utilization."""
    if calculation.refined_ratio is not None:
        return round(calculation.refined_ratio * calculation.target)  # a quotient of integers
    if calculation.total is not None:
        return calculation.total
    return calculation.usage if calculation.utilization is None else calculation.utilization


def _number(calculation: Calculation, number: int) -> str:
    return decimal(number) if calculation.utilization is None else f"{number}"


def _quotient(calculation: Calculation) -> str:
    """Return the division that yields the ratio."""
    dividend, target = _number(calculation, _dividend(calculation)), _number(calculation, calculation.target)
    if calculation.total is not None:
        return f"{dividend} / ({target} * {count(calculation.replicas, 'replica')})"
    return f"{dividend} / {target}"


def _rounded_up(calculation: Calculation) -> str:
    """Return the equation that yields the replicas. Floating-point arithmetic, as upstream's, can yield one more."""
    dividend, target, replicas = _dividend(calculation), calculation.target, calculation.replicas
    pods = calculation.multiplier
    equation = f"ceil({_number(calculation, dividend)} / {_number(calculation, target)}"
    equation += ")" if pods is None else f" * {count(pods, 'pod')})"
    factor = 1 if pods is None else pods
    if target and math.ceil(Fraction(dividend, target) * factor) == replicas:
        return f"{equation} = {replicas}"
    product = dividend / target * factor if target else math.inf
    if math.isfinite(product) and math.ceil(product) == replicas:
        return f"{equation} = ceil({product!r}) = {replicas} in floating-point arithmetic"
    return f"{equation} is out of range: {replicas}"


def explain_unavailable(step: MetricUnavailableStep, at: datetime | None) -> str:
    """Return why a metric is unavailable, since when, and when its fallback becomes active."""
    failure = f" ({step.failure.value})" if step.failure is not None else ""
    text = f"{step.metric}: unavailable{failure}: {failure_cause(step.message)}"
    if step.failing_since is None or step.fallback_at is None:
        return text
    fallback = count(step.fallback_replicas or 0, "replica")
    since, due = time_near(step.failing_since, at), time_near(step.fallback_at, at)
    return f"{text}; failing since {since}, fallback of {fallback} at {due}"


def explain_fallback(step: MetricFallbackStep, at: datetime | None) -> str:
    """Return the proposal of a fallback and how it was determined."""
    replicas = count(step.replicas, "replica")
    failure = f" ({step.failure.value})" if step.failure is not None else ""
    since = time_near(step.failing_since, at)
    cause = failure_cause(step.message)
    text = f"{step.metric}: fallback proposes {replicas}: failing since {since}{failure}: {cause}"
    if step.strategy in (USE_MAX, USE_MIN):
        which = "larger" if step.strategy == USE_MAX else "smaller"
        return f"{text}; {step.strategy}: the {which} of {step.configured} and the {step.captured} at activation"
    return text
