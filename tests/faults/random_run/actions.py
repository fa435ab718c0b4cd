"""The actions of a run: changes of objects and metrics by other clients, and faults."""

from dataclasses import dataclass, field
from typing import Final

from tests.faults.random_run.record import Json

PROCESSES: Final = ("a", "b", "c")
LEADER: Final = "leader"
"""The subject of a fault of the process that holds the lease when the fault begins."""

TARGETS: Final = ("web-0", "web-1", "web-2", "web-3")
EDITED: Final = TARGETS[:2]
"""The targets of random edits, deletions and resizes."""

SCRIPTED: Final = TARGETS[2]
"""The target whose autoscaler is changed only by scenarios, so that no random edit ends them."""

RATED: Final = TARGETS[3]
"""The target whose autoscaler is never edited, so that its rate policies can be checked."""


@dataclass(frozen=True)
class Profile:
    """The length of a run and of what happens in it, in seconds."""

    duration: float
    gap: float
    """The mean time between two actions."""

    fault: float
    """The mean duration of a fault."""

    window: int
    """The longest stabilization window."""

    period: int
    """The period of rate policies."""

    fallback: int
    """The shortest failureDurationSeconds."""

    settle: float
    """The time after the last fault until every target must have its replicas."""

    stale: float
    """The age of watched objects after which a scale must not be written."""


@dataclass(frozen=True)
class Action:
    """One action at a time after the start of the run."""

    at: float
    kind: str
    subject: str = ""
    """The name of a process, an autoscaler, a target or a metric."""

    seconds: float = 0.0
    """The duration of a fault."""

    detail: Json = field(default_factory=dict)

    def __str__(self) -> str:
        seconds = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.at:8.2f} {self.kind} {self.subject}{seconds} {self.detail or ''}".rstrip()


def is_fault(action: Action) -> bool:
    """Return whether an action disturbs a process or its connection."""
    return action.seconds > 0 or action.kind.endswith("watches")


def metric_of_target(target: str) -> str:
    """Return the name of the metric that the autoscaler of a target reads."""
    return f"m{TARGETS.index(target)}"
