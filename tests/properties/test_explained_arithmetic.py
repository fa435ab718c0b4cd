"""The arithmetic in an explanation: every equation holds, for generated values, targets and pods."""

import re
from fractions import Fraction
from math import ceil
from typing import Final

from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from autoscaler.algorithm.calculate import AverageValueTarget, from_average, from_pods, from_total
from autoscaler.algorithm.explain import step_text
from autoscaler.types.metric_result import Calculation, CalculationFailure, PodGroups, Tolerance
from autoscaler.types.steps import MetricProposalStep
from tests.builders import make_pods, make_samples

quick = hypothesis(max_examples=200, deadline=None)
TOLERANCE: Final = Tolerance(0.1, 0.1)
MILLI: Final = st.one_of(st.integers(0, 10**6), st.integers(0, 10**15))
TARGETS: Final = st.integers(1, 10**7)
_EQUATION: Final = re.compile(r"ceil\(([\d.]+) / ([\d.]+)(?: \* (\d+) pods?)?\) = (\d+|ceil\([\d.]+\) = \d+ in)")


def check_equation(calculation: Calculation | CalculationFailure) -> None:
    if isinstance(calculation, CalculationFailure):
        return
    text = step_text(MetricProposalStep("queue", calculation.replicas, 4, TOLERANCE, calculation))
    found = _EQUATION.search(text)
    if found is None:
        assert "within the tolerance" in text or "reverses the direction" in text or "out of range" in text, text
        return
    dividend, divisor, pods, result = found.groups()
    exact = ceil(Fraction(dividend) / Fraction(divisor) * int(pods or 1))
    if result.isdigit():
        assert exact == int(result) == calculation.replicas, text
    else:  # upstream's floating-point arithmetic differs from exact arithmetic
        assert exact != calculation.replicas, text
        assert f" = {calculation.replicas} in floating-point" in text


@quick
@given(MILLI, TARGETS, st.integers(0, 500))
def test_equation_of_a_target_per_replica_holds(usage: int, target: int, replicas: int) -> None:
    check_equation(from_average(usage, target, replicas, TOLERANCE, caps_overflow=True))


@quick
@given(MILLI, TARGETS, st.integers(0, 50))
def test_equation_of_a_target_for_the_workload_holds(usage: int, target: int, replicas: int) -> None:
    check_equation(from_total(usage, target, replicas, TOLERANCE, make_pods(replicas)))


@quick
@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=20), TARGETS, st.integers(0, 5), st.integers(0, 5))
def test_equation_of_a_target_per_pod_holds(values: list[int], target: int, missing: int, unready: int) -> None:
    groups = PodGroups(
        len(values),
        tuple(f"unready-{number}" for number in range(unready)),
        tuple(f"missing-{number}" for number in range(missing)),
    )
    current = len(values) + missing + unready
    check_equation(from_pods(make_samples(*values), groups, current, TOLERANCE, AverageValueTarget(target)))
