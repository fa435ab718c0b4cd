"""What one pass has found so far: conditions, events and steps, in the order in which they came up."""

from datetime import datetime

from autoscaler.algorithm import fallback
from autoscaler.algorithm.conditions import SCALED_TO_ZERO, Finding
from autoscaler.algorithm.fallback import Clocks
from autoscaler.settings import FeatureGates
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Event
from autoscaler.types.history import History
from autoscaler.types.observation import Observation
from autoscaler.types.status import TRUE, Condition
from autoscaler.types.steps import Step


class Draft:
    """The one thing in a pass that grows; it lives inside ``decide`` and nobody else sees it."""

    __slots__ = (
        "_conditions",
        "autoscaler",
        "clocks",
        "current",
        "events",
        "gates",
        "has_fallback",
        "late_events",
        "now",
        "past",
        "second",
        "seen",
        "working",
    )

    def __init__(
        self, autoscaler: Autoscaler, seen: Observation, past: History, gates: FeatureGates, now: datetime
    ) -> None:
        self.autoscaler = autoscaler
        self.seen = seen
        self.past = past
        self.gates = gates
        self.now = now
        self.second = now.replace(microsecond=0)
        """Now, as precise as the wire is."""
        self.current = 0
        """The target's size, once it is known."""
        self.working: list[Step] = []
        self.events: list[Event] = []
        self.late_events: list[Event] = []
        self._conditions: dict[str, Condition] = {old.type: old for old in autoscaler.status.conditions}
        self.has_fallback = bool(fallback.configured(autoscaler.spec))
        self.clocks: Clocks = fallback.running_clocks(autoscaler.status, gates) if self.has_fallback else {}

    @property
    def reference(self) -> str:
        """The target, as upstream's errors call it."""
        target = self.autoscaler.spec.scale_target_ref
        return f"{target.kind}/{self.autoscaler.metadata.namespace}/{target.name}"

    @property
    def zeroed_by_us(self) -> bool:
        """Whether the last rescale was ours and went to zero."""
        condition = self._conditions.get(SCALED_TO_ZERO)
        return self.gates.HPAScaleToZero and condition is not None and condition.status == TRUE

    def find(self, finding: Finding) -> None:
        """Let a condition say this; its time moves only if its status does."""
        kind, status, reason, message = finding.type, finding.status, finding.reason, finding.message
        old = self._conditions.get(kind)
        if old is None or old.status != status:
            self._conditions[kind] = Condition(kind, status, self.second, reason, message)
        elif old.reason != reason or old.message != message:
            self._conditions[kind] = Condition(kind, status, old.last_transition_time, reason, message)

    def drop(self, kind: str) -> None:
        """Let a condition disappear."""
        self._conditions.pop(kind, None)

    def conditions(self) -> tuple[Condition, ...]:
        """Give all conditions, in the order of their first appearance."""
        return tuple(self._conditions.values())
