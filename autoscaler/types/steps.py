"""The working of a decision: the steps of one pass in order, each with what went in, what came out and the rule.

Steps carry numbers only. Sentences are made by ``algorithm.explain`` when someone reads them, so that a fleet of twenty
thousand autoscalers does not pay for prose.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from autoscaler.types.history import Recommendation
from autoscaler.types.metric_result import Calculation, Tolerance, Trouble
from autoscaler.types.observation import FailureClass
from autoscaler.types.record import Record
from autoscaler.types.spec import Policy


class StepRecord(Record, tag_field="step", tag=True):
    """A step of the working; on the wire it names itself."""


class TargetSeen(StepRecord):
    """The target's scale was read."""

    replicas: int
    status_replicas: int
    minimum: int
    maximum: int


class TargetNotSeen(StepRecord):
    """The target's scale could not be read; nothing else was looked at."""

    message: str


class SpecRefused(StepRecord):
    """The spec makes no sense, so nothing was looked at."""

    problems: tuple[str, ...]


class SwitchedOff(StepRecord):
    """The target is at zero and not by this autoscaler's doing, so it is left alone."""

    scaling_to_zero: bool
    """Whether the feature is on at all."""


class OutOfBounds(StepRecord):
    """The target is outside its bounds, so it goes to the bound without asking any metric."""

    current: int
    replicas: int


class SelectorRefused(StepRecord):
    """The target's pods cannot be told, so no metric was asked."""

    reason: str
    message: str


class MetricAnswered(StepRecord):
    """A metric asked for replicas."""

    metric: str
    replicas: int
    current: int
    tolerance: Tolerance
    calculation: Calculation


class MetricFailed(StepRecord):
    """A metric has no say in this pass."""

    metric: str
    message: str
    trouble: Trouble
    failure: FailureClass | None = None
    failing_since: datetime | None = None
    fallback_at: datetime | None = None
    fallback_replicas: int | None = None


class MetricFellBack(StepRecord):
    """A metric has been unreadable for so long that its fallback speaks for it."""

    metric: str
    replicas: int
    message: str
    failing_since: datetime
    strategy: str
    configured: int | None
    captured: int


class Combined(StepRecord):
    """All metrics together: the highest proposal, unless too little is known to go down."""

    current: int
    replicas: int
    asked: int
    failed: int
    winner: int | None = None
    """Position in spec.metrics of the metric that decided."""

    blocked: bool = False
    """Nothing, or not enough, is known: stay."""


class Stabilized(StepRecord):
    """The recommendation after looking back over a window."""

    wanted: int
    replicas: int
    current: int
    window: timedelta
    """The window that applied; the scale-down window if none made a difference."""

    held_by: Recommendation | None = None
    """The recommendation that will be the last to leave the window before the answer can move."""

    held_down: bool = False
    """Held below what was wanted, by the scale-up window; only with behavior."""


class Limit(StrEnum):
    """What stopped a pass from going where it wanted; the values are the reasons of the ScalingLimited condition."""

    NONE = "DesiredWithinRange"
    MINIMUM = "TooFewReplicas"
    MAXIMUM = "TooManyReplicas"
    UP_RATE = "ScaleUpLimit"
    DOWN_RATE = "ScaleDownLimit"


class Limited(StepRecord):
    """The step that rates and bounds allow towards the steady recommendation."""

    wanted: int
    replicas: int
    limit: Limit = Limit.NONE
    rate: int | None = None
    """What the rate alone would allow in the direction travelled."""

    policy: Policy | None = None
    """The policy that set the rate; None: scaling this way is disabled, or there is only the fixed rate."""

    until: datetime | None = None
    """When that policy will have forgotten a rescale and allow more."""

    fixed_rate: bool = False
    """There is no behavior, so the rate is upstream's fixed one."""


class Woken(StepRecord):
    """The target was scaled to zero by this autoscaler and minReplicas has been raised since."""

    wanted: int
    replicas: int


class Hold(StrEnum):
    """Why a decision is not carried out."""

    RIVAL = "AmbiguousTarget"
    PAUSED = "Paused"
    DRY_RUN = "DryRun"


class Held(StepRecord):
    """The decision is made and told, but not carried out."""

    hold: Hold
    replicas: int
    current: int
    until: datetime | None = None
    rivals: tuple[str, ...] = ()


class Concluded(StepRecord):
    """Where this pass ends."""

    current: int
    replicas: int


class WriteFailed(StepRecord):
    """The target's scale could not be written."""

    replicas: int
    message: str


Step: TypeAlias = (
    TargetSeen
    | TargetNotSeen
    | SpecRefused
    | SwitchedOff
    | OutOfBounds
    | SelectorRefused
    | MetricAnswered
    | MetricFailed
    | MetricFellBack
    | Combined
    | Stabilized
    | Limited
    | Woken
    | Held
    | Concluded
    | WriteFailed
)
