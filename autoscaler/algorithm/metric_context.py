"""What every metric of a pass is judged against, and how a metric that has no say is put into upstream's words."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.metric_result import Incalculable, Tolerance, Trouble, Unavailable
from autoscaler.types.observation import BadSelector, FailureClass, Pod, Reading, ScaleTarget, UnavailableReading
from autoscaler.types.record import Record
from autoscaler.types.spec import Behavior

R = TypeVar("R", bound=Reading)


class Scene(Record):
    """What every metric of a pass is judged against."""

    namespace: str
    target: ScaleTarget
    pods: tuple[Pod, ...]
    tolerance: Tolerance
    settings: Settings
    gates: FeatureGates
    now: datetime


class Failure(Record):
    """Why a metric has no say, before its source wraps it in upstream's words."""

    message: str
    trouble: Trouble
    failure: FailureClass | None = None

    def of(self, reason: str, wrap: Callable[[str], str]) -> Unavailable:
        """Make the verdict: the event tells the message, the log the wrapped one."""
        return Unavailable(reason, self.message, wrap(self.message), self.trouble, self.failure)


def taken(reading: Reading, kind: type[R], asking: str) -> R | Failure:
    """Take the reading if there is one of the kind, or say why not; ``asking`` is how upstream begins that sentence."""
    if isinstance(reading, kind):
        return reading
    if isinstance(reading, UnavailableReading):
        return Failure(f"{asking}: {reading.message}", Trouble.RETRIEVAL, reading.failure)
    if isinstance(reading, BadSelector):
        return Failure(reading.message, Trouble.SPEC)
    raise TypeError(f"a {type(reading).__name__} was observed where a {kind.__name__} belongs")


def due_to_pods(problem: Incalculable, context: str = "") -> Failure:
    """Say that the numbers were there and the pods were not."""
    return Failure(f"{context}{problem.message}", Trouble.PODS)


def tolerance_of(behavior: Behavior | None, settings: Settings, gates: FeatureGates) -> Tolerance:
    """Give the tolerance for each direction: the autoscaler's own where it has one, else the cluster's."""
    down = up = settings.tolerance
    if behavior is not None and gates.HPAConfigurableTolerance:
        if behavior.scale_down is not None and behavior.scale_down.tolerance is not None:
            down = behavior.scale_down.tolerance.to_float()
        if behavior.scale_up is not None and behavior.scale_up.tolerance is not None:
            up = behavior.scale_up.tolerance.to_float()
    return Tolerance(down, up)
