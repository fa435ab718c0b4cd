"""The steps of a decision: one record per stage of the algorithm, with its inputs and outputs.

Steps hold numbers only. ``algorithm.explain`` renders them as text on request, so that reconciling thousands of
autoscalers does not pay for formatting.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from autoscaler.types.history import Recommendation
from autoscaler.types.metric_result import Calculation, Tolerance, UnavailableCause
from autoscaler.types.observation import FailureClass
from autoscaler.types.record import Record
from autoscaler.types.spec import Policy


class StepRecord(Record, tag_field="step", tag=lambda name: name.removesuffix("Step")):
    """Base class of the steps. In JSON the field ``step`` holds the class name without its suffix."""


class TargetStep(StepRecord):
    """The target's scale was read."""

    replicas: int
    status_replicas: int
    minimum: int
    maximum: int


class TargetUnavailableStep(StepRecord):
    """The target's scale could not be read; nothing else was evaluated."""

    message: str


class InvalidSpecStep(StepRecord):
    """The spec is invalid; nothing was evaluated."""

    problems: tuple[str, ...]


class ReconcileFailedStep(StepRecord):
    """The reconcile raised an exception; nothing was evaluated or written."""

    message: str


class ScalingDisabledStep(StepRecord):
    """The target has 0 replicas that this autoscaler did not set, so it is not scaled."""

    scale_to_zero_enabled: bool
    """The feature gate HPAScaleToZero."""


class OutOfBoundsStep(StepRecord):
    """The target is outside minReplicas and maxReplicas, so it is scaled to the bound without evaluating metrics."""

    current: int
    replicas: int


class InvalidSelectorStep(StepRecord):
    """The target's selector is missing, invalid or ambiguous; no metric was evaluated."""

    reason: str
    message: str


class MetricProposalStep(StepRecord):
    """A metric proposes a replica count."""

    metric: str
    replicas: int
    current: int
    tolerance: Tolerance
    calculation: Calculation


class MetricUnavailableStep(StepRecord):
    """A metric contributes no proposal."""

    metric: str
    message: str
    cause: UnavailableCause
    failure: FailureClass | None = None
    failing_since: datetime | None = None
    fallback_at: datetime | None = None
    fallback_replicas: int | None = None


class MetricFallbackStep(StepRecord):
    """The fallback of a metric proposes a replica count, because the metric has failed for too long."""

    metric: str
    replicas: int
    message: str
    failing_since: datetime
    strategy: str
    configured: int | None
    captured: int
    failure: FailureClass | None = None
    since: datetime | None = None
    """When the fallback began: at the end of ``failureDurationSeconds``. None in old records."""


class RecommendationStep(StepRecord):
    """The combined result of all metrics: the highest proposal, unless unavailable metrics block scaling down."""

    current: int
    replicas: int
    metrics: int
    unavailable: int
    winner: int | None = None
    """Index in spec.metrics of the metric with the highest proposal."""

    blocked: bool = False
    """No proposal, or unavailable metrics and a proposal below the current replicas: no change."""


class StabilizationStep(StepRecord):
    """The recommendation after stabilization."""

    recommended: int
    replicas: int
    current: int
    window: timedelta
    """The window that applied; the scale-down window if the result is unchanged."""

    held_by: Recommendation | None = None
    """The recommendation that must leave the window before the result can change."""

    scale_up: bool = False
    """The scale-up window applied: the result is lower than recommended. Only with behavior."""


class ScalingLimit(StrEnum):
    """The limit that applied; the values are the reasons of the ScalingLimited condition."""

    NONE = "DesiredWithinRange"
    MINIMUM = "TooFewReplicas"
    MAXIMUM = "TooManyReplicas"
    UP_RATE = "ScaleUpLimit"
    DOWN_RATE = "ScaleDownLimit"


class LimitStep(StepRecord):
    """The stabilized recommendation after scaling policies and bounds."""

    stabilized: int
    replicas: int
    limit: ScalingLimit = ScalingLimit.NONE
    rate: int | None = None
    """Replica count that the scaling rate alone allows in this direction."""

    policy: Policy | None = None
    """The policy that determined the rate; None: scaling is disabled in this direction, or the rate is fixed."""

    until: datetime | None = None
    """When a past rescale leaves the policy's period, which increases the rate."""

    fixed_rate: bool = False
    """Whether upstream's fixed rate applies, because the spec has no behavior."""


class ScaleFromZeroStep(StepRecord):
    """minReplicas was raised after this autoscaler scaled the target to zero: scale to minReplicas."""

    limited: int
    replicas: int


class NotAppliedReason(StrEnum):
    """Why a decision is not applied; the values are reasons of the AbleToScale condition."""

    CONFLICT = "AmbiguousTarget"
    PAUSED = "Paused"
    DRY_RUN = "DryRun"


class NotAppliedStep(StepRecord):
    """The decision is reported but not applied."""

    reason: NotAppliedReason
    replicas: int
    current: int
    until: datetime | None = None
    conflicts: tuple[str, ...] = ()
    annotation: str | None = None
    """The value of the annotation that pauses the autoscaler; None: ``spec.mode`` does."""


class ResultStep(StepRecord):
    """The resulting replica count."""

    current: int
    replicas: int


class WriteFailedStep(StepRecord):
    """The target's scale could not be written, or it is unknown whether it was written."""

    replicas: int
    message: str
    outcome_unknown: bool = False


Step: TypeAlias = (
    TargetStep
    | TargetUnavailableStep
    | InvalidSpecStep
    | ReconcileFailedStep
    | ScalingDisabledStep
    | OutOfBoundsStep
    | InvalidSelectorStep
    | MetricProposalStep
    | MetricUnavailableStep
    | MetricFallbackStep
    | RecommendationStep
    | StabilizationStep
    | LimitStep
    | ScaleFromZeroStep
    | NotAppliedStep
    | ResultStep
    | WriteFailedStep
)
