"""The inputs and outputs of a step as text with units, for the opened steps of the page. Pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, TypeAlias

from adapter.debug.formatting import format_duration
from autoscaler.algorithm.formatting import count, decimal
from autoscaler.types.history import Recommendation
from autoscaler.types.metric_result import Calculation, PodGroups, Tolerance
from autoscaler.types.spec import PERCENT_POLICY, Policy
from autoscaler.types.steps import Step
from autoscaler.values.arithmetic import MIN_INT64
from autoscaler.values.timestamps import to_utc

Values: TypeAlias = Iterator[tuple[str, str]]
"""Labels and texts."""

_MAX_NAMES: Final = 10
_LABELS: Final = {
    "at": "time",
    "configured": "configured replicas",
    "captured": "replicas at activation",
    "current": "current replicas",
    "minimum": "minReplicas",
    "maximum": "maxReplicas",
    "metrics": "number of metrics",
    "unavailable": "unavailable metrics",
    "rate": "replicas that the rate allows",
    "recommended": "recommended replicas",
    "stabilized": "replicas after stabilization",
    "limited": "replicas after limits",
    "since": "fallback since",
    "status_replicas": "replicas in the status",
}
_NOT_SHOWN: Final = frozenset({"winner"})
"""Indices, which the text of the step replaces with names."""


def step_values(step: Step) -> Values:
    """Yield the fields of a step that have a value, and those that are true."""
    for name in step.__struct_fields__:
        value = getattr(step, name)
        if name not in _NOT_SHOWN and value is not None and value is not False and value != ():
            yield from _values(_LABELS.get(name, name.replace("_", " ")), value)


def _values(label: str, value: object) -> Values:
    match value:
        case Calculation():
            yield from _calculation(value)
        case Tolerance():
            yield "tolerance", f"{1 - value.down:.4g} to {1 + value.up:.4g}"
        case Policy():
            amount = f"{value.value} %" if value.type == PERCENT_POLICY else count(value.value, "pod")
            yield label, f"{amount} in {format_duration(timedelta(seconds=value.period_seconds))}"
        case Recommendation():
            yield label, f"{count(value.replicas, 'replica')}, recommended at {_time(value.at)}"
        case True:
            yield label, "yes"
        case timedelta():
            yield label, format_duration(value)
        case datetime():
            yield label, _time(value)
        case tuple():
            yield label, ", ".join(map(str, value))
        case Enum():
            yield label, str(value.value)
        case _:
            yield label, str(value)


def _calculation(calculation: Calculation) -> Values:
    """Yield the values in the unit of the metric; the record has thousandths, or percent for a utilization."""
    if calculation.utilization is not None:
        yield "utilization", f"{calculation.utilization} %"
    if calculation.total is not None:
        yield "total", decimal(calculation.total)
    if calculation.usage != MIN_INT64:  # of upstream's average over 0 pods
        yield "value" if calculation.total is None else "value per replica", decimal(calculation.usage)
    is_percent = calculation.utilization is not None
    yield "target value", f"{calculation.target} %" if is_percent else decimal(calculation.target)
    yield "ratio", f"{calculation.ratio:.4g}"
    if calculation.refined_ratio is not None:
        yield "ratio with assumed values", f"{calculation.refined_ratio:.4g}"
    if calculation.multiplier is not None:
        yield "multiplied by", count(calculation.multiplier, "pod")
    if calculation.pods is not None:
        yield from _pods(calculation.pods)


def _pods(pods: PodGroups) -> Values:
    yield "ready pods", str(pods.ready)
    for label, names in (
        ("pods not ready", pods.unready),
        ("pods without a value", pods.missing),
        ("ignored pods", pods.ignored),
    ):
        if names:
            more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
            yield label, f"{len(names)}: {', '.join(names[:_MAX_NAMES])}{more}"


def _time(time: datetime) -> str:
    return f"{to_utc(time):%Y-%m-%d %H:%M:%S} UTC"
