"""What is wrong with a metric's target: an unknown type, or a number that is not positive."""

from collections.abc import Iterator
from typing import Final

from autoscaler.types.spec import AVERAGE_VALUE, UTILIZATION, VALUE, MetricTarget
from autoscaler.validation.problem import Problem, Word, invalid, required

_TARGET_TYPES: Final = (UTILIZATION, VALUE, AVERAGE_VALUE)


def target_problems(target: MetricTarget, path: str) -> Iterator[Problem]:
    """Yield what is wrong with a target whatever its source; its type is not held against the field that is set."""
    if not target.type:
        yield required(f"{path}.type", "must specify a metric target type")
    if target.type not in _TARGET_TYPES:
        yield invalid(f"{path}.type", Word(target.type), "must be either Utilization, Value, or AverageValue")
    if target.value is not None and target.value.sign() != 1:
        yield invalid(f"{path}.value", target.value, "must be positive")
    if target.average_value is not None and target.average_value.sign() != 1:
        yield invalid(f"{path}.averageValue", target.average_value, "must be positive")
    if target.average_utilization is not None and target.average_utilization < 1:
        yield invalid(f"{path}.averageUtilization", target.average_utilization, "must be greater than 0")
