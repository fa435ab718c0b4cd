"""Applies a decision: writes the scale if it changed, records events, and writes the status if it changed.

The order is upstream's: an event or status reports only what has already happened. A status that could not be written
becomes the pending status, because two parts of it must not be lost: the ScaledToZero condition and the
firstFailureTime of metrics.

Scaling to zero is the exception: the ScaledToZero condition is written before the scale. If the process ended between
the two writes in the other order, the zero would be taken for a user's, and the target would never be scaled up again.
"""

from msgspec.structs import replace

from autoscaler.algorithm.conditions import SCALED_TO_ZERO
from autoscaler.algorithm.targets import format_targets
from autoscaler.algorithm.write_failures import after_failed_rescale, after_failed_status_write
from autoscaler.algorithm.zero import scaled_to_zero
from autoscaler.controller import persistence
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.state import ReconcileState
from autoscaler.kube.errors import KubeError, client_go_message
from autoscaler.kube.scale import NotRescaled
from autoscaler.settings import Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.status import Condition, MetricStatus, Status


class NotLeader(Exception):
    """Writing is not allowed, because another process is or may become the leader."""


class DecisionWriter:
    """Writes decisions to the API server."""

    def __init__(self, dependencies: Dependencies, settings: Settings) -> None:
        self._dependencies = dependencies
        self._settings = settings

    async def apply(
        self, decision: Decision, *, stored: Autoscaler, effective: Autoscaler, state: ReconcileState
    ) -> Decision:
        """Apply a decision, record it in ``state``, and return it as changed by failed writes.

        ``stored`` is the object of the API server; ``effective`` is the same with defaults and the pending status.
        """
        if decision.scale_to is not None and (outdated := self._dependencies.outdated):
            decision = after_failed_rescale(decision, effective, state.history, outdated)
        stored, decision = await self._mark_scaled_to_zero(decision, stored, effective, state)
        decision = await self._rescale(decision, effective, state)
        state.history = decision.history
        for event in decision.events:
            self._dependencies.events.record(effective, event)
        recorded = len(decision.events)
        decision = await self.write_status(decision, stored=stored, effective=effective, state=state)
        for event in (*decision.events[recorded:], *decision.late_events):
            self._dependencies.events.record(effective, event)
        state.decision = decision
        return decision

    async def write_status(
        self, decision: Decision, *, stored: Autoscaler, effective: Autoscaler, state: ReconcileState
    ) -> Decision:
        """Write the status if it differs from the stored one, or if the persisted history is outdated."""
        fingerprint = persistence.fingerprint(decision.history, effective.spec, decision.at)
        is_outdated = persistence.is_outdated(state.persisted, fingerprint)
        if decision.status.is_equivalent_to(stored.status) and not is_outdated:
            state.pending_status, state.failed_status_writes = None, 0
            return decision
        history = persistence.encode_history(decision.history, effective.spec, self._settings, decision.at)
        targets = format_targets(effective.spec, decision.status)
        self._require_leadership()
        try:
            status = replace(decision.status, controller_state=history, targets=targets)
            await self._dependencies.statuses.write(stored, status)
        except KubeError as error:
            state.pending_status = decision.status
            state.failed_status_writes += 1
            name = effective.metadata.name
            return after_failed_status_write(decision, name, client_go_message(error, f"patch podautoscalers {name}"))
        state.persisted, state.pending_status, state.failed_status_writes = fingerprint, None, 0
        return decision

    async def _mark_scaled_to_zero(
        self, decision: Decision, stored: Autoscaler, effective: Autoscaler, state: ReconcileState
    ) -> tuple[Autoscaler, Decision]:
        """Write the ScaledToZero condition before scaling to zero; if that fails, do not scale."""
        condition = decision.status.condition(SCALED_TO_ZERO)
        goes_to_zero = decision.scale_to == 0 and scaled_to_zero(decision.status)
        if condition is None or not goes_to_zero or scaled_to_zero(stored.status):
            return stored, decision
        self._require_leadership()
        marked = replace(stored.status, conditions=_with_condition(stored.status.conditions, condition))
        try:
            return await self._dependencies.statuses.write(stored, marked), decision
        except KubeError as error:
            reason = client_go_message(error, f"patch podautoscalers {effective.metadata.name}")
            message = f"the ScaledToZero condition could not be written before scaling to zero: {reason}"
            return stored, after_failed_rescale(decision, effective, state.history, message)

    async def _rescale(self, decision: Decision, effective: Autoscaler, state: ReconcileState) -> Decision:
        if decision.scale_to is None:
            return decision
        self._require_leadership()
        result = await self._dependencies.scales.write(effective, decision.scale_to)
        if isinstance(result, NotRescaled):
            return after_failed_rescale(decision, effective, state.history, result.message)
        state.rescaled_at = decision.at
        return decision

    def _require_leadership(self) -> None:
        if not self._dependencies.may_write():
            raise NotLeader


def with_pending_status(status: Status, pending: Status | None) -> Status:
    """Merge ScaledToZero and firstFailureTime of a pending status into the stored status."""
    if pending is None:
        return status
    condition = pending.condition(SCALED_TO_ZERO)
    differs = scaled_to_zero(pending) != scaled_to_zero(status)
    conditions = status.conditions
    if condition is not None and differs:
        conditions = _with_condition(conditions, condition)
    has_failure = _has_failure_time(pending.current_metrics) or _has_failure_time(status.current_metrics)
    metrics = pending.current_metrics if has_failure else status.current_metrics
    return replace(status, conditions=conditions, current_metrics=metrics)


def _with_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    if any(old.type == new.type for old in conditions):
        return tuple(new if old.type == new.type else old for old in conditions)
    return (*conditions, new)


def _has_failure_time(metrics: tuple[MetricStatus, ...] | None) -> bool:
    return any(
        metric.external is not None and metric.external.first_failure_time is not None for metric in metrics or ()
    )
