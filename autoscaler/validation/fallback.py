"""Validates the fallback of an external metric.

Replicas outside minReplicas and maxReplicas are only a warning, because the bounds apply to the fallback anyway.
"""

from collections.abc import Iterator
from typing import Final

from autoscaler.types.spec import STATIC, USE_MAX, USE_MIN, Fallback
from autoscaler.validation.problem import ValidationProblem, invalid, not_supported, required

_STRATEGIES: Final = (STATIC, USE_MAX, USE_MIN)


def fallback_problems(fallback: Fallback, path: str, floor_seconds: int) -> Iterator[ValidationProblem]:
    """Yield the problems of a fallback; fields with defaults may be absent."""
    seconds = fallback.failure_duration_seconds
    if seconds is not None and seconds < floor_seconds:
        yield invalid(f"{path}.failureDurationSeconds", seconds, f"must be greater than or equal to {floor_seconds}")
    if fallback.replicas is None:
        yield required(f"{path}.replicas", "must specify the replicas to propose while the metric cannot be read")
    elif fallback.replicas < 1:
        yield invalid(f"{path}.replicas", fallback.replicas, "must be greater than or equal to 1")
    if fallback.strategy is not None and fallback.strategy not in _STRATEGIES:
        yield not_supported(f"{path}.strategy", fallback.strategy, _STRATEGIES)
