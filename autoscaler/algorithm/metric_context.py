"""The inputs that all metrics of a decision share, and the conversion of failures to upstream's error texts."""

from datetime import datetime
from typing import TypeVar

from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.metric_result import CalculationFailure, Tolerance, UnavailableCause, UnavailableMetric
from autoscaler.types.observation import BadSelector, FailureClass, Pod, Reading, ScaleTarget, UnavailableReading
from autoscaler.types.record import Record
from autoscaler.types.spec import Behavior

R = TypeVar("R", bound=Reading)


class MetricContext(Record):
    """The inputs that all metrics of a decision share."""

    namespace: str
    target: ScaleTarget
    pods: tuple[Pod, ...]
    tolerance: Tolerance
    settings: Settings
    gates: FeatureGates
    now: datetime


class MetricFailure(Record):
    """Why a metric is unavailable, without the prefixes that upstream adds per source type."""

    message: str
    cause: UnavailableCause
    failure: FailureClass | None = None

    def to_unavailable(self, reason: str, prefix: str) -> UnavailableMetric:
        """Return the metric result; only its error gets the prefix."""
        return UnavailableMetric(reason, self.message, f"{prefix}{self.message}", self.cause, self.failure)


def expect_reading(reading: Reading, kind: type[R], prefix: str) -> R | MetricFailure:
    """Return the reading if it is of this kind, or the failure with upstream's ``prefix``."""
    if isinstance(reading, kind):
        return reading
    if isinstance(reading, UnavailableReading):
        return MetricFailure(f"{prefix}: {reading.message}", UnavailableCause.RETRIEVAL, reading.failure)
    if isinstance(reading, BadSelector):
        return MetricFailure(reading.message, UnavailableCause.SPEC)
    raise TypeError(f"expected a {kind.__name__}, observed a {type(reading).__name__}")


def pods_failure(failure: CalculationFailure, prefix: str = "") -> MetricFailure:
    """Return the failure of a metric that was read, but not calculable with these pods."""
    return MetricFailure(f"{prefix}{failure.message}", UnavailableCause.PODS)


def tolerance_of(behavior: Behavior | None, settings: Settings, gates: FeatureGates) -> Tolerance:
    """Return the tolerance per direction: from the behavior if set there, else from the settings."""
    down = up = settings.tolerance
    if behavior is not None and gates.HPAConfigurableTolerance:
        if behavior.scale_down is not None and behavior.scale_down.tolerance is not None:
            down = behavior.scale_down.tolerance.to_float()
        if behavior.scale_up is not None and behavior.scale_up.tolerance is not None:
            up = behavior.scale_up.tolerance.to_float()
    return Tolerance(down, up)
