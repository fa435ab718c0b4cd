"""Validates the target of a metric: its type and positive values."""

from collections.abc import Iterator
from typing import Final

from autoscaler.types.spec import AVERAGE_VALUE, UTILIZATION, VALUE, MetricTarget
from autoscaler.validation.problem import EnumValue, ValidationProblem, invalid, required

_TARGET_TYPES: Final = (UTILIZATION, VALUE, AVERAGE_VALUE)


def target_problems(target: MetricTarget, path: str) -> Iterator[ValidationProblem]:
    """Yield the problems of a target; whether the field for its type is set is checked per source."""
    if not target.type:
        yield required(f"{path}.type", "must specify a metric target type")
    if target.type not in _TARGET_TYPES:
        yield invalid(f"{path}.type", EnumValue(target.type), "must be either Utilization, Value, or AverageValue")
    if target.value is not None and target.value.sign() != 1:
        yield invalid(f"{path}.value", target.value, "must be positive")
    if target.average_value is not None and target.average_value.sign() != 1:
        yield invalid(f"{path}.averageValue", target.average_value, "must be positive")
    if target.average_utilization is not None and target.average_utilization < 1:
        yield invalid(f"{path}.averageUtilization", target.average_utilization, "must be greater than 0")
