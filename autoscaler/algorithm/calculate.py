"""From a metric's numbers and the pods to a replica count.

Order of operations is upstream's: ratios are floats of two integers, a ratio is multiplied before it is rounded,
averages and percentages are truncated first. Exact arithmetic would give other answers (25 pods at 110 % of a target
of 50 % want 56, not 55).
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from autoscaler.algorithm.pods import count_serving
from autoscaler.types.metric_result import Calculation, Incalculable, PodGroups, Rule, Tolerance
from autoscaler.types.observation import Pod, PodSample
from autoscaler.types.record import Record
from autoscaler.values.arithmetic import MAX_INT32, MAX_INT64, ceiling32, ceiling64, quotient, ratio, wrap32, wrap64

NO_PODS = Incalculable("no pods returned by selector while calculating replica count")
NO_METRICS = Incalculable("did not receive metrics for targeted pods (pods might be unready)")
NO_KNOWN_PODS = Incalculable("no metrics returned matched known pods")


class Measure(Record):
    """How a set of pods stands to the target."""

    ratio: float
    usage: int
    utilization: int | None = None


class Yardstick(Protocol):
    """What pods' numbers are held against."""

    @property
    def target(self) -> int:
        """The target, in the yardstick's own unit."""
        ...

    def measure(self, values: Mapping[str, int]) -> Measure | None:
        """Hold the numbers against the target; None if no pod is known to both."""
        ...

    def assumed_when_missing(self, pod: str) -> int:
        """Give the number that a pod without one is assumed to have when scaling down would otherwise follow."""
        ...


class AverageYardstick(Record):
    """The plain average of the pods, against a value."""

    target: int

    def measure(self, values: Mapping[str, int]) -> Measure:
        """Average over all numbers, also of pods that nobody listed."""
        average = quotient(wrap64(sum(values.values())), len(values))
        return Measure(ratio(average, self.target), average)

    def assumed_when_missing(self, _pod: str) -> int:
        """Assume exactly the target."""
        return self.target


class UtilizationYardstick(Record):
    """Usage as a percentage of requests, against a percentage."""

    target: int
    requests: Mapping[str, int]

    def measure(self, values: Mapping[str, int]) -> Measure | None:
        """Compare total usage with total requests of the pods known to both, in whole percent."""
        requests = self.requests
        known = [name for name in values if name in requests]
        requested = wrap64(sum(requests[name] for name in known))
        if requested == 0:
            return None
        used = wrap64(sum(values[name] for name in known))
        percent = wrap32(quotient(wrap64(used * 100), requested))
        return Measure(ratio(percent, self.target), quotient(used, len(known)), percent)

    def assumed_when_missing(self, pod: str) -> int:
        """Assume all that the pod requested, or the target if that is more."""
        return quotient(wrap64(self.requests[pod] * max(100, self.target)), 100)


def from_pods(
    samples: Mapping[str, PodSample], groups: PodGroups, current: int, tolerance: Tolerance, yardstick: Yardstick
) -> Calculation | Incalculable:
    """Reckon from numbers of single pods: Resource, ContainerResource and Pods metrics."""
    left_out = {*groups.ignored, *groups.unready}
    values = {name: sample.milli for name, sample in samples.items() if name not in left_out}
    if not values:
        return NO_METRICS
    first = yardstick.measure(values)
    if first is None:
        return NO_KNOWN_PODS
    growing_with_unready = bool(groups.unready) and first.ratio > 1.0
    if growing_with_unready or groups.missing:
        assume(values, groups, first.ratio, yardstick)
        return _with_assumptions(values, groups, current, tolerance, yardstick, first)
    within = tolerance.covers(first.ratio)
    return Calculation(
        replicas=current if within else ceiling32(first.ratio * groups.ready),
        rule=Rule.WITHIN_TOLERANCE if within else Rule.READY_PODS,
        usage=first.usage,
        target=yardstick.target,
        ratio=first.ratio,
        utilization=first.utilization,
        multiplier=groups.ready,
        pods=groups,
    )


def assume(values: dict[str, int], groups: PodGroups, first_ratio: float, yardstick: Yardstick) -> None:
    """Fill in the pods without a number so that they damp the move: busy when shrinking, idle when growing."""
    if first_ratio < 1.0:
        for pod in groups.missing:
            values[pod] = yardstick.assumed_when_missing(pod)
    elif first_ratio > 1.0:
        for pod in (*groups.missing, *groups.unready):
            values[pod] = 0


def _with_assumptions(
    values: Mapping[str, int],
    groups: PodGroups,
    current: int,
    tolerance: Tolerance,
    yardstick: Yardstick,
    first: Measure,
) -> Calculation | Incalculable:
    again = yardstick.measure(values)
    if again is None:
        return NO_KNOWN_PODS
    replicas, rule = current, Rule.WOULD_REVERSE
    if tolerance.covers(again.ratio):
        rule = Rule.WITHIN_TOLERANCE
    elif not (first.ratio < 1.0 < again.ratio or first.ratio > 1.0 > again.ratio):
        wanted = ceiling32(again.ratio * len(values))
        if not ((again.ratio < 1.0 and wanted > current) or (again.ratio > 1.0 and wanted < current)):
            replicas, rule = wanted, Rule.ASSUMED_PODS
    return Calculation(
        replicas=replicas,
        rule=rule,
        usage=first.usage,
        target=yardstick.target,
        ratio=first.ratio,
        utilization=first.utilization,
        refined_ratio=again.ratio,
        multiplier=len(values),
        pods=groups,
    )


def from_total(
    usage: int, target: int, current: int, tolerance: Tolerance, pods: Sequence[Pod]
) -> Calculation | Incalculable:
    """Reckon from one number for the whole workload, held against a value: the ratio times the pods that serve."""
    usage_ratio = ratio(usage, target)
    if current == 0:
        return Calculation(ceiling32(usage_ratio), Rule.FROM_ZERO, usage, target, usage_ratio)
    if tolerance.covers(usage_ratio):
        return Calculation(current, Rule.WITHIN_TOLERANCE, usage, target, usage_ratio)
    if not pods:
        return Incalculable(f"unable to calculate ready pods: {NO_PODS.message}")
    serving = count_serving(pods)
    wanted = usage_ratio * serving
    replicas = MAX_INT32 if wanted > MAX_INT32 else ceiling32(wanted)
    return Calculation(replicas, Rule.READY_PODS, usage, target, usage_ratio, multiplier=serving)


def from_object_average(usage: int, target: int, status_replicas: int, tolerance: Tolerance) -> Calculation:
    """Reckon from one number of an object, held against a value for each pod."""
    usage_ratio = _average_ratio(usage, target, status_replicas)
    average = ceiling64(ratio(usage, status_replicas))
    if tolerance.covers(usage_ratio):
        return Calculation(status_replicas, Rule.WITHIN_TOLERANCE, average, target, usage_ratio)
    wanted = ratio(usage, target)
    return Calculation(ceiling32(wanted), Rule.TOTAL, average, target, usage_ratio if status_replicas else wanted)


def from_external_average(usage: int, target: int, status_replicas: int, tolerance: Tolerance) -> Calculation:
    """Reckon from an external metric's total, held against a value for each pod."""
    usage_ratio = _average_ratio(usage, target, status_replicas)
    overflowed = float(usage) >= float(MAX_INT64)
    average = MAX_INT64 if overflowed else ceiling64(ratio(usage, status_replicas))
    if tolerance.covers(usage_ratio):
        return Calculation(status_replicas, Rule.WITHIN_TOLERANCE, average, target, usage_ratio)
    wanted = ratio(usage, target)
    replicas = MAX_INT32 if wanted > MAX_INT32 else ceiling32(wanted)
    return Calculation(replicas, Rule.TOTAL, average, target, usage_ratio if status_replicas else wanted)


def _average_ratio(usage: int, target: int, status_replicas: int) -> float:
    return ratio(usage, float(target) * float(status_replicas))


def total_of_value_target(values: Sequence[int]) -> int:
    """Sum series for a value target: an overflow upwards stays at the largest number."""
    total = 0
    for value in values:
        if value > 0 and total > MAX_INT64 - value:
            return MAX_INT64
        total = wrap64(total + value)
    return total


def total_of_average_target(values: Sequence[int]) -> int:
    """Sum series for an average target: upstream takes a sum below zero for an overflow."""
    total = 0
    for value in values:
        total = wrap64(total + value)
        if total < 0:
            return MAX_INT64
    return total
