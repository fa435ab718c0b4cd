"""Applies a decision: writes the scale if it changed, records events, and writes the status if it changed.

The order is upstream's: an event or status reports only what has already happened. A status that could not be written
becomes the pending status, because two parts of it must not be lost: the ScaledToZero condition and the
firstFailureTime of metrics.

Scaling to zero is the exception: the ScaledToZero condition is written before the scale. If the process ended between
the two writes in the other order, the zero would be taken for a user's, and the target would never be scaled up again.

A rescale without a response is neither done nor failed. It is kept in the history, and every reconcile fetches the
scale until the outcome is known. Meanwhile the controller scales on: a write requires the version of the target that it
has read, so a later write that succeeds makes the earlier one impossible.
"""

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from autoscaler.algorithm.conditions import SCALED_TO_ZERO
from autoscaler.algorithm.failure_texts import differs_only_in_failure_texts
from autoscaler.algorithm.limit import record_rescale
from autoscaler.algorithm.state_changes import with_state
from autoscaler.algorithm.targets import format_targets
from autoscaler.algorithm.write_failures import (
    after_failed_rescale,
    after_failed_status_write,
    after_late_rescale,
    after_unknown_rescale,
    with_condition,
)
from autoscaler.algorithm.zero import scaled_to_zero
from autoscaler.controller import persistence
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.state import ReconcileState
from autoscaler.controller.worker_pool import continue_in_task
from autoscaler.kube.errors import KubeError, client_go_message
from autoscaler.kube.scale import NotApplied, NotRescaled, OutcomeUnknown, Rescaled, RescaleResult
from autoscaler.settings import Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import UnknownRescale
from autoscaler.types.status import MetricStatus, Status

log = logging.getLogger(__name__)

_MAX_IN_FLIGHT: Final = timedelta(seconds=75)
"""How long after a decision its rescale can be applied: the API server ends a request after 60 seconds by default, and
the status can be written before, which takes up to 10 seconds."""

_STOPPED: Final = "the controller was stopped before it received the response"


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
        decision = with_state(await self._rescale(decision, effective, state), effective.status)
        state.history = decision.history
        for event in decision.events:
            self._dependencies.events.record(effective, event)
        recorded = len(decision.events)
        decision = await self.write_status(decision, stored=stored, effective=effective, state=state)
        for event in (*decision.events[recorded:], *decision.late_events):
            self._dependencies.events.record(effective, event)
        state.decision = decision
        return decision

    async def settle(self, effective: Autoscaler, state: ReconcileState) -> None:
        """Look up the outcome of rescales for which it is unknown; if it is known now, update ``state``."""
        unknown = state.history.unknown
        in_flight = may_be_in_flight(state, self._dependencies.clock())
        outcome = await self._dependencies.scales.outcome(effective, unknown, in_flight=in_flight)
        if isinstance(outcome, NotApplied):
            state.history = replace(state.history, unknown=())
            log.info("rescale was not applied", extra={"autoscaler": _key(effective)})
        elif outcome is not None:
            self._record_late_rescale(outcome, effective, state)

    def settle_observed(self, replicas: int, effective: Autoscaler, state: ReconcileState) -> None:
        """Record the rescale that resulted in these replicas, so that the decision about them takes it into account."""
        applied = [rescale for rescale in state.history.unknown if rescale.replicas == replicas]
        if applied:
            self._record_late_rescale(applied[-1], effective, state)

    def _record_late_rescale(self, rescale: UnknownRescale, effective: Autoscaler, state: ReconcileState) -> None:
        history = replace(state.history, unknown=())
        before, after = rescale.before, rescale.replicas
        state.history = record_rescale(history, effective.spec.behavior, before, after, rescale.at)
        state.rescaled_at = rescale.at
        state.pending_status, event = after_late_rescale(effective, rescale)
        self._dependencies.events.record(effective, event)
        log.info("rescale was applied", extra={"autoscaler": _key(effective), "replicas": after})

    async def write_status(
        self, decision: Decision, *, stored: Autoscaler, effective: Autoscaler, state: ReconcileState
    ) -> Decision:
        """Write the status if it differs from the stored one, or if the persisted history is outdated."""
        fingerprint = persistence.fingerprint(decision.history, effective.spec, decision.at)
        is_outdated = persistence.is_outdated(state.persisted, fingerprint)
        if not is_outdated and not _is_write_due(decision, stored, state):
            state.pending_status, state.failed_status_writes = None, 0
            return decision
        history = persistence.encode_history(decision.history, effective.spec, self._settings, decision.at)
        await continue_in_task()
        self._require_leadership()
        try:
            await self._dependencies.statuses.write(stored, _stored_status(decision, effective, history))
        except KubeError as error:
            state.pending_status = decision.status
            state.failed_status_writes += 1
            name = effective.metadata.name
            return after_failed_status_write(decision, name, client_go_message(error, f"put podautoscalers {name}"))
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
        marked = with_condition(stored.status, condition)
        try:
            return await self._dependencies.statuses.write(stored, marked), decision
        except KubeError as error:
            reason = client_go_message(error, f"put podautoscalers {effective.metadata.name}")
            message = f"the ScaledToZero condition could not be written before scaling to zero: {reason}"
            return stored, after_failed_rescale(decision, effective, state.history, message)

    async def _rescale(self, decision: Decision, effective: Autoscaler, state: ReconcileState) -> Decision:
        if decision.scale_to is None:
            return decision
        self._require_leadership()
        try:
            result = await self._write_scale(decision, decision.scale_to, effective, state)
        except asyncio.CancelledError:  # the process stops; `Reconciler.flush` writes the status for the next leader
            rescale = _unknown_rescale(decision, resource_version="")
            state.decision = after_unknown_rescale(decision, effective, state.history, rescale, _STOPPED)
            state.history, state.pending_status = state.decision.history, state.decision.status
            raise
        if isinstance(result, NotRescaled):
            return after_failed_rescale(decision, effective, state.history, result.message)
        state.rescaled_at = decision.at
        if isinstance(result, OutcomeUnknown):
            rescale = _unknown_rescale(decision, result.resource_version)
            return after_unknown_rescale(decision, effective, state.history, rescale, result.message)
        return replace(decision, history=replace(decision.history, unknown=()))

    async def _write_scale(
        self, decision: Decision, replicas: int, effective: Autoscaler, state: ReconcileState
    ) -> RescaleResult:
        """Write the scale; without a response, fetch it to learn the outcome."""
        scales, unknown = self._dependencies.scales, state.history.unknown
        result = await scales.write(effective, replicas, retry_conflicts=not unknown)
        if not isinstance(result, OutcomeUnknown):
            return result
        rescale = _unknown_rescale(decision, result.resource_version)
        outcome = await scales.outcome(effective, (*unknown, rescale), in_flight=True)
        if isinstance(outcome, NotApplied):
            return NotRescaled(result.message)
        return Rescaled(replicas) if outcome is rescale else result

    def _require_leadership(self) -> None:
        if not self._dependencies.may_write():
            raise NotLeader


def may_be_in_flight(state: ReconcileState, now: datetime) -> bool:
    """Return whether the API server can still be handling a rescale without a response, also of an earlier leader."""
    latest = max((state.restored_at, *(rescale.at for rescale in state.history.unknown)))
    return now - latest < _MAX_IN_FLIGHT


def _is_write_due(decision: Decision, stored: Autoscaler, state: ReconcileState) -> bool:
    """Return whether the status differs from the stored one; if only in the text of a failure, within the limit."""
    if decision.status.is_equivalent_to(stored.status):
        return False
    return not differs_only_in_failure_texts(decision.status, stored.status) or state.allow_text_write(decision.at)


def _stored_status(decision: Decision, effective: Autoscaler, history: str | None) -> Status:
    """Return the status to store: that of the decision, the history, and texts for ``kubectl get``."""
    status, target = decision.status, effective.spec.scale_target_ref
    return replace(
        status,
        controller_state=history,
        reference=f"{target.kind}/{target.name}",
        targets=format_targets(effective.spec, status),
    )


def _key(autoscaler: Autoscaler) -> str:
    return f"{autoscaler.metadata.namespace}/{autoscaler.metadata.name}"


def _unknown_rescale(decision: Decision, resource_version: str) -> UnknownRescale:
    before = decision.status.current_replicas
    return UnknownRescale(before, decision.replicas, decision.at, resource_version, decision.rescale_reason)


def with_pending_status(status: Status, pending: Status | None) -> Status:
    """Merge ScaledToZero, firstFailureTime and lastScaleTime of a pending status into the stored status."""
    if pending is None:
        return status
    condition = pending.condition(SCALED_TO_ZERO)
    differs = scaled_to_zero(pending) != scaled_to_zero(status)
    if condition is not None and differs:
        status = with_condition(status, condition)
    has_failure = _has_failure_time(pending.current_metrics) or _has_failure_time(status.current_metrics)
    metrics = pending.current_metrics if has_failure else status.current_metrics
    scale_time = max(filter(None, (status.last_scale_time, pending.last_scale_time)), default=None)
    return replace(status, current_metrics=metrics, last_scale_time=scale_time, state=pending.state)


def _has_failure_time(metrics: tuple[MetricStatus, ...] | None) -> bool:
    return any(
        metric.external is not None and metric.external.first_failure_time is not None for metric in metrics or ()
    )
