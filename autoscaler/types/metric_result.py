"""What one metric says: how many replicas it asks for and how that was reckoned, or why it cannot tell."""

from enum import StrEnum
from typing import TypeAlias

from autoscaler.types.observation import FailureClass
from autoscaler.types.record import Record
from autoscaler.types.status import UNREAD, MetricStatus


class Tolerance(Record):
    """How far a ratio may stray from 1 and change nothing."""

    down: float
    up: float

    def covers(self, ratio: float) -> bool:
        """Tell whether the ratio is near enough to 1; the edges count, not-a-number does not."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class PodGroups(Record):
    """The four piles of pods."""

    ready: int
    unready: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


class Rule(StrEnum):
    """How a metric's replica count was reckoned."""

    WITHIN_TOLERANCE = "the ratio is within tolerance: no change"
    READY_PODS = "ratio times the pods that count"
    ASSUMED_PODS = "ratio times the pods that count, with assumptions for those without a number"
    WOULD_REVERSE = "the assumptions turn the direction round: no change"
    FROM_ZERO = "ratio rounded up, since there are no pods yet"
    TOTAL = "total divided by the target for each pod"


class Calculation(Record):
    """One metric's arithmetic, number by number."""

    replicas: int
    rule: Rule
    usage: int
    """What status shows, in milli: the average of a pod, or the total."""

    target: int
    """In milli, or percent where utilization is the measure."""

    ratio: float
    """Usage over target, of the pods that have a number; where there is no pod yet, as if there were one."""

    utilization: int | None = None
    refined_ratio: float | None = None
    """The ratio again, after assumptions were made for pods without a number."""

    multiplier: int | None = None
    """How many pods the ratio was multiplied by."""

    pods: PodGroups | None = None


class Incalculable(Record):
    """The numbers were read, but no replica count follows from them and the pods."""

    message: str


class Proposal(Record):
    """The replicas one metric asks for."""

    replicas: int
    status: MetricStatus
    calculation: Calculation


class Substitute(Record):
    """The replicas that a fallback asks for in the place of its metric; there is no ratio, so no tolerance."""

    replicas: int
    status: MetricStatus


class Trouble(StrEnum):
    """Whose fault it is that a metric has no say."""

    RETRIEVAL = "the metric could not be read"
    PODS = "the pods do not allow a calculation"
    SPEC = "the spec is wrong"


class Unavailable(Record):
    """Why one metric has no say."""

    reason: str
    """The condition's and the event's reason."""

    message: str
    """What went wrong, as the event tells it."""

    error: str
    """The same with upstream's wrapping, as the log tells it."""

    trouble: Trouble
    failure: FailureClass | None = None
    status: MetricStatus = UNREAD


Answer: TypeAlias = Proposal | Unavailable
"""What a metric says itself."""

Verdict: TypeAlias = Answer | Substitute
"""What is said of a metric, by itself or by its fallback."""
