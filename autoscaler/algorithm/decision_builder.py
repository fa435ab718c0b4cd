"""Collect conditions, events and steps while a decision is computed."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from autoscaler.algorithm import conditions, fallback
from autoscaler.algorithm.conditions import ConditionUpdate
from autoscaler.algorithm.fallback import FailureRuns
from autoscaler.settings import FeatureGates
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Event
from autoscaler.types.history import History
from autoscaler.types.observation import Observation
from autoscaler.types.status import Condition, MetricStatus
from autoscaler.types.steps import Step


class DecisionBuilder:
    """The mutable state of one ``decide`` call."""

    def __init__(
        self, autoscaler: Autoscaler, observation: Observation, history: History, gates: FeatureGates, now: datetime
    ) -> None:
        self.autoscaler = autoscaler
        self.observation = observation
        self.history = history
        self.gates = gates
        self.now = now
        self.status_time = now.replace(microsecond=0)
        """The time in whole seconds, as timestamps in the status have it."""
        self.current = 0
        """The target's replicas, once they are read."""
        self.steps: list[Step] = []
        self.events: list[Event] = []
        self.late_events: list[Event] = []
        self._conditions: dict[str, Condition] = {old.type: old for old in autoscaler.status.conditions}
        self.has_fallback = bool(fallback.sources_with_fallback(autoscaler.spec))
        self.failure_runs: FailureRuns = fallback.active_runs(autoscaler.status, gates) if self.has_fallback else {}

    @property
    def target_name(self) -> str:
        """The target as ``kind/namespace/name``, as upstream's errors name it."""
        target = self.autoscaler.spec.scale_target_ref
        return f"{target.kind}/{self.autoscaler.metadata.namespace}/{target.name}"

    def set_condition(self, update: ConditionUpdate) -> None:
        """Set a condition; its transition time changes only with its status."""
        kind, status, reason, message = update.type, update.status, update.reason, update.message
        old = self._conditions.get(kind)
        if old is None or old.status != status:
            self._conditions[kind] = Condition(kind, status, self.status_time, reason, message)
        elif old.reason != reason or old.message != message:
            self._conditions[kind] = Condition(kind, status, old.last_transition_time, reason, message)

    def remove_condition(self, kind: str) -> None:
        self._conditions.pop(kind, None)

    def set_fallback_condition(
        self, metrics: Sequence[MetricStatus] | None, unknown: ConditionUpdate | None = None
    ) -> None:
        """Set the condition of fallbacks if the spec has any; ``unknown`` replaces it if no metric was read."""
        if not self.has_fallback:
            self.remove_condition(conditions.FALLBACK_ACTIVE)
        elif not self.gates.HPAExternalMetricFallback:
            self.set_condition(conditions.FALLBACK_FEATURE_OFF)
        else:
            self.set_condition(unknown or fallback.fallback_condition(metrics or ()))

    def conditions(self) -> tuple[Condition, ...]:
        """Return all conditions, in the order in which they were first set.

        A reconcile may set a condition twice, as to True after reading the target and to False because of a pause. A
        condition whose status is the same as before keeps its transition time, so that the status is not written again.
        """
        return tuple([self._with_transition_time(condition) for condition in self._conditions.values()])

    def _with_transition_time(self, condition: Condition) -> Condition:
        before = self.autoscaler.status.condition(condition.type)
        if before is None or before is condition or before.status != condition.status:
            return condition
        return replace(condition, last_transition_time=before.last_transition_time)
