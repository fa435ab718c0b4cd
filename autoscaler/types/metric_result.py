"""The result of one metric: a proposal with its calculation, or the reason why the metric is unavailable."""

from enum import StrEnum
from typing import TypeAlias

from autoscaler.types.observation import FailureClass
from autoscaler.types.record import Record
from autoscaler.types.status import UNREAD, MetricStatus


class Tolerance(Record):
    """Relative deviations from the target that cause no scaling, per direction."""

    down: float
    up: float

    def covers(self, ratio: float) -> bool:
        """Return whether the ratio is within tolerance of 1; the limits are inclusive, NaN is outside."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class PodGroups(Record):
    """Pods grouped as upstream does: the number of ready pods, and the names of the others."""

    ready: int
    unready: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


class CalculationRule(StrEnum):
    """The rule by which a metric's replica count was calculated."""

    WITHIN_TOLERANCE = "the ratio is within tolerance: no change"
    READY_PODS = "ratio times ready pods"
    ASSUMED_PODS = "ratio times pods, with assumed values for pods without a metric"
    DIRECTION_REVERSED = "the assumed values reverse the scaling direction: no change"
    FROM_ZERO = "ratio rounded up, because there are no pods"
    TOTAL = "total divided by the target per pod"


class Calculation(Record):
    """The inputs and the result of one metric's replica calculation."""

    replicas: int
    rule: CalculationRule
    usage: int
    """Value that status shows, in milli: the average per pod, or the total."""

    target: int
    """In milli, or in percent for utilization."""

    ratio: float
    """Usage divided by target, over the pods that have a value. With no pods: the total divided by the target."""

    utilization: int | None = None
    refined_ratio: float | None = None
    """The ratio with assumed values for pods without a metric."""

    multiplier: int | None = None
    """Number of pods that the ratio was multiplied by."""

    pods: PodGroups | None = None
    total: int | None = None
    """Value of the whole workload in milli, for a target per pod that it is divided by."""


class CalculationFailure(Record):
    """The metric was read, but no replica count can be calculated from it and the pods."""

    message: str


class Proposal(Record):
    """The replica count that one metric proposes."""

    replicas: int
    status: MetricStatus
    calculation: Calculation


class FallbackProposal(Record):
    """The replica count that a fallback proposes instead of its metric. Tolerance does not apply: there is no ratio."""

    replicas: int
    status: MetricStatus


class UnavailableCause(StrEnum):
    """Why a metric contributes no proposal."""

    RETRIEVAL = "the metric could not be read"
    PODS = "no calculation is possible with these pods"
    SPEC = "the spec is invalid"


class UnavailableMetric(Record):
    """The reason why one metric contributes no proposal."""

    reason: str
    """Reason of the condition and the event."""

    message: str
    """Message of the event."""

    error: str
    """The message with upstream's prefixes, for the log."""

    cause: UnavailableCause
    failure: FailureClass | None = None
    status: MetricStatus = UNREAD


MetricResult: TypeAlias = Proposal | UnavailableMetric
"""The result of a metric itself, before its fallback is considered."""

EffectiveResult: TypeAlias = MetricResult | FallbackProposal
"""The result of a metric after its fallback was considered."""
