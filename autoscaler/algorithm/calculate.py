"""Calculate a replica count from metric values and pods.

Rounding makes the order of operations visible, so it is upstream's: averages and percentages are truncated to integers,
a ratio is the float quotient of two integers, and it is multiplied before it is rounded up. With a target of 50 %,
25 pods at 110 % yield 56 replicas; exact arithmetic yields 55.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from autoscaler.algorithm.pods import count_ready
from autoscaler.types.metric_result import Calculation, CalculationFailure, CalculationRule, PodGroups, Tolerance
from autoscaler.types.observation import Pod, PodSample
from autoscaler.types.record import Record
from autoscaler.values.arithmetic import MAX_INT32, MAX_INT64, ceiling32, ceiling64, quotient, ratio, wrap32, wrap64

NO_PODS = CalculationFailure("no pods returned by selector while calculating replica count")
NO_METRICS = CalculationFailure("did not receive metrics for targeted pods (pods might be unready)")
NO_KNOWN_PODS = CalculationFailure("no metrics returned matched known pods")


class UsageRatio(Record):
    """The usage of a set of pods relative to the target."""

    ratio: float
    usage: int
    utilization: int | None = None


class PodTarget(Protocol):
    """A target that the values of pods are compared with."""

    @property
    def target(self) -> int:
        """The target, in milli or percent."""
        ...

    def compare(self, values: Mapping[str, int]) -> UsageRatio | None:
        """Return the ratio of the pods' values to the target; None if no pod is known."""
        ...

    def assumed_value(self, pod: str) -> int:
        """Return the value assumed for a pod without a metric when the other pods suggest scaling down."""
        ...


class AverageValueTarget(Record):
    """A target for the average of the pods' values."""

    target: int

    def compare(self, values: Mapping[str, int]) -> UsageRatio:
        """Average all values, also those of pods that the list of pods does not contain."""
        average = quotient(wrap64(sum(values.values())), len(values))
        return UsageRatio(ratio(average, self.target), average)

    def assumed_value(self, _pod: str) -> int:
        return self.target


class UtilizationTarget(Record):
    """A target for the pods' usage in percent of their requests."""

    target: int
    requests: Mapping[str, int]

    def compare(self, values: Mapping[str, int]) -> UsageRatio | None:
        """Divide the total usage by the total requests of the pods that have both, in whole percent."""
        requests = self.requests
        known = [name for name in values if name in requests]
        requested = wrap64(sum([requests[name] for name in known]))
        if requested == 0:
            return None
        used = wrap64(sum([values[name] for name in known]))
        percent = wrap32(quotient(wrap64(used * 100), requested))
        return UsageRatio(ratio(percent, self.target), quotient(used, len(known)), percent)

    def assumed_value(self, pod: str) -> int:
        """Return 100 % of the pod's request, or the target percentage of it if that is more."""
        return quotient(wrap64(self.requests[pod] * max(100, self.target)), 100)


def from_pods(
    samples: Mapping[str, PodSample], groups: PodGroups, current: int, tolerance: Tolerance, target: PodTarget
) -> Calculation | CalculationFailure:
    """Calculate from values per pod: Resource, ContainerResource and Pods metrics."""
    excluded = {*groups.ignored, *groups.unready}
    values = {name: sample.milli for name, sample in samples.items() if name not in excluded}
    if not values:
        return NO_METRICS
    initial = target.compare(values)
    if initial is None:
        return NO_KNOWN_PODS
    scales_up_with_unready = bool(groups.unready) and initial.ratio > 1.0
    if scales_up_with_unready or groups.missing:
        add_assumed_values(values, groups, initial.ratio, target)
        return _with_assumed_values(values, groups, current, tolerance, target, initial)
    within = tolerance.covers(initial.ratio)
    return Calculation(
        replicas=current if within else ceiling32(initial.ratio * groups.ready),
        rule=CalculationRule.WITHIN_TOLERANCE if within else CalculationRule.READY_PODS,
        usage=initial.usage,
        target=target.target,
        ratio=initial.ratio,
        utilization=initial.utilization,
        multiplier=groups.ready,
        pods=groups,
    )


def add_assumed_values(values: dict[str, int], groups: PodGroups, initial_ratio: float, target: PodTarget) -> None:
    """Add values for pods without a metric that dampen the change: high when scaling down, 0 when scaling up."""
    if initial_ratio < 1.0:
        for pod in groups.missing:
            values[pod] = target.assumed_value(pod)
    elif initial_ratio > 1.0:
        for pod in (*groups.missing, *groups.unready):
            values[pod] = 0


def _with_assumed_values(
    values: Mapping[str, int],
    groups: PodGroups,
    current: int,
    tolerance: Tolerance,
    target: PodTarget,
    initial: UsageRatio,
) -> Calculation | CalculationFailure:
    refined = target.compare(values)
    if refined is None:
        return NO_KNOWN_PODS
    replicas, rule = current, CalculationRule.DIRECTION_REVERSED
    if tolerance.covers(refined.ratio):
        rule = CalculationRule.WITHIN_TOLERANCE
    elif not (initial.ratio < 1.0 < refined.ratio or initial.ratio > 1.0 > refined.ratio):
        proposed = ceiling32(refined.ratio * len(values))
        if not ((refined.ratio < 1.0 and proposed > current) or (refined.ratio > 1.0 and proposed < current)):
            replicas, rule = proposed, CalculationRule.ASSUMED_PODS
    return Calculation(
        replicas=replicas,
        rule=rule,
        usage=initial.usage,
        target=target.target,
        ratio=initial.ratio,
        utilization=initial.utilization,
        refined_ratio=refined.ratio,
        multiplier=len(values),
        pods=groups,
    )


def from_total(
    usage: int, target: int, current: int, tolerance: Tolerance, pods: Sequence[Pod]
) -> Calculation | CalculationFailure:
    """Calculate from one value for the whole workload and a Value target: the ratio times the ready pods."""
    usage_ratio = ratio(usage, target)
    if current == 0:
        return Calculation(ceiling32(usage_ratio), CalculationRule.FROM_ZERO, usage, target, usage_ratio)
    if tolerance.covers(usage_ratio):
        return Calculation(current, CalculationRule.WITHIN_TOLERANCE, usage, target, usage_ratio)
    if not pods:
        return CalculationFailure(f"unable to calculate ready pods: {NO_PODS.message}")
    ready = count_ready(pods)
    proposed = usage_ratio * ready
    replicas = MAX_INT32 if proposed > MAX_INT32 else ceiling32(proposed)
    return Calculation(replicas, CalculationRule.READY_PODS, usage, target, usage_ratio, multiplier=ready)


def from_average(
    usage: int, target: int, status_replicas: int, tolerance: Tolerance, *, caps_overflow: bool
) -> Calculation:
    """Calculate from one value for the whole workload and an AverageValue target.

    Upstream limits the result to int32 and int64 for External metrics (``caps_overflow``), but not for Object metrics.
    """
    usage_ratio = ratio(usage, float(target) * float(status_replicas))
    overflows = caps_overflow and float(usage) >= float(MAX_INT64)
    average = MAX_INT64 if overflows else ceiling64(ratio(usage, status_replicas))
    if tolerance.covers(usage_ratio):
        return Calculation(status_replicas, CalculationRule.WITHIN_TOLERANCE, average, target, usage_ratio, total=usage)
    proposed = ratio(usage, target)
    replicas = MAX_INT32 if caps_overflow and proposed > MAX_INT32 else ceiling32(proposed)
    shown_ratio = usage_ratio if status_replicas else proposed
    return Calculation(replicas, CalculationRule.TOTAL, average, target, shown_ratio, total=usage)


def total_of_value_target(values: Sequence[int]) -> int:
    """Sum the series for a Value target; a positive overflow yields the largest int64."""
    total = 0
    for value in values:
        if value > 0 and total > MAX_INT64 - value:
            return MAX_INT64
        total = wrap64(total + value)
    return total


def total_of_average_target(values: Sequence[int]) -> int:
    """Sum the series for an AverageValue target; like upstream, treat a negative sum as an overflow."""
    total = 0
    for value in values:
        total = wrap64(total + value)
        if total < 0:
            return MAX_INT64
    return total
