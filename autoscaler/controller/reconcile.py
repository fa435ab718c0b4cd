"""One reconcile of one autoscaler: observe, read the clock once, decide, apply, report.

A reconcile for which everything is at hand and that writes nothing completes without suspending. Any other calls
`continue_in_task` before it waits for the first time.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from autoscaler.algorithm.conditions import state_discarded
from autoscaler.algorithm.decide import decide
from autoscaler.algorithm.future_times import without_future_times
from autoscaler.algorithm.next_reconcile import next_delay
from autoscaler.algorithm.not_evaluated import decide_failed_reconcile, decide_invalid_spec
from autoscaler.algorithm.stale_zero import clear_stale_zero
from autoscaler.algorithm.zero import scaled_to_zero
from autoscaler.controller import persistence
from autoscaler.controller.apply import DecisionWriter, NotLeader, may_be_in_flight, with_pending_status
from autoscaler.controller.backoff import ReconcileBackoff
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.observe import Observer
from autoscaler.controller.owners import POD_AUTOSCALER
from autoscaler.controller.reconcile_plan import ReconcilePlan, ReconcilePlans
from autoscaler.controller.reporting import Reporter
from autoscaler.controller.state import ControllerState, ReconcileState
from autoscaler.controller.worker_pool import continue_in_task
from autoscaler.defaults import with_defaults
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.observation import ScaleTarget
from autoscaler.types.spec import Spec

_INITIAL_RETRY_DELAY: Final = timedelta(seconds=1)
_SHUTDOWN_SECONDS: Final = 0.6
"""Time for pending writes at shutdown; another process should take over within two seconds."""

_FLUSH_ATTEMPTS: Final = 3


_MAX_ERROR_LENGTH: Final = 256

log = logging.getLogger(__name__)


class Reconciler:
    """Reconciles single autoscalers and keeps their state."""

    def __init__(
        self,
        dependencies: Dependencies,
        observer: Observer,
        settings: Settings,
        gates: FeatureGates,
        reporter: Reporter,
    ) -> None:
        self.plans = ReconcilePlans(settings, gates)
        self.state = ControllerState()
        self._dependencies = dependencies
        self._observer = observer
        self._writer = DecisionWriter(dependencies, settings)
        self._settings = settings
        self._gates = gates
        self._reporter = reporter
        self._backoff = ReconcileBackoff(settings.sync_period)

    async def reconcile(self, key: str) -> timedelta | None:
        """Reconcile one autoscaler; return the delay until the next reconcile, or None if it was deleted.

        The worker pool begins it without a task.
        An unexpected error is reported in a condition. It is not raised, so that it affects no other autoscaler.
        """
        stored = self._dependencies.autoscalers.get(key)
        if stored is None:
            self._forget(key)
            return None
        loop = asyncio.get_running_loop()
        if (remaining := self._backoff.remaining(key, stored, loop.time())) is not None:
            return remaining
        try:
            delay = await self._reconcile(key, stored)
        except NotLeader:
            raise
        except Exception as error:  # noqa: BLE001 - any error belongs to this autoscaler
            delay = self._backoff.record_failure(key, stored, loop.time())
            self._reporter.report_failure(key, error, delay)
            await continue_in_task()
            await self._apply_failure(key, stored, error)
        else:
            self._backoff.forget(key)
        return delay

    async def _reconcile(self, key: str, stored: Autoscaler) -> timedelta:
        started = asyncio.get_running_loop().time()
        plan = self.plans.get(key, stored)
        decision, state, read_durations = await self._decide(key, stored, plan)
        if decision.scale_to is not None:
            await continue_in_task()
        applying = self._writer.apply(
            decision, stored=stored, effective=self._effective(stored, plan.spec, state), state=state
        )
        decision = await (applying if decision.scale_to is None else _finish_on_cancel(applying))
        duration = timedelta(seconds=asyncio.get_running_loop().time() - started)
        self._reporter.report_reconcile(key, stored, plan.spec, decision, duration, read_durations)
        return self._next_delay(decision, state)

    async def _apply_failure(self, key: str, stored: Autoscaler, error: Exception) -> None:
        """Set the condition of a reconcile that raised; if that raises as well, the log must be enough."""
        try:
            await self._write_failure(key, stored, error)
        except NotLeader:
            raise
        except Exception:
            log.exception("condition ReconcileFailed not set", extra={"autoscaler": key})

    async def _write_failure(self, key: str, stored: Autoscaler, error: Exception) -> None:
        spec, now = with_defaults(stored.spec), self._dependencies.clock()
        state = self.state.for_object(key, stored.metadata.uid) or self._restore(key, stored, spec, now)
        effective = without_future_times(self._effective(stored, spec, state), now)
        text = f"{type(error).__name__}: {error}"[:_MAX_ERROR_LENGTH]
        decision = decide_failed_reconcile(
            autoscaler=effective, error=text, history=state.history, gates=self._gates, now=now
        )
        decision = await self._writer.apply(decision, stored=stored, effective=effective, state=state)
        self._reporter.report_reconcile(key, stored, spec, decision, timedelta(0))

    async def flush(self) -> None:
        """Write pending statuses before shutdown, so that the next leader starts from them."""
        pending = [(key, state) for key, state in self.state.items() if state.pending_status is not None]
        with suppress(TimeoutError):
            async with asyncio.timeout(_SHUTDOWN_SECONDS):
                await asyncio.gather(*(self._flush(key, state) for key, state in pending), return_exceptions=True)

    async def _flush(self, key: str, state: ReconcileState) -> None:
        for _ in range(_FLUSH_ATTEMPTS):
            stored = self._dependencies.autoscalers.get(key)
            if stored is None or stored.metadata.uid != state.uid:
                return
            if state.decision is None or state.pending_status is None:
                return
            effective = self._effective(stored, with_defaults(stored.spec), state)
            await self._writer.write_status(state.decision, stored=stored, effective=effective, state=state)
            await asyncio.sleep(_SHUTDOWN_SECONDS / _FLUSH_ATTEMPTS)

    async def _decide(
        self, key: str, stored: Autoscaler, plan: ReconcilePlan
    ) -> tuple[Decision, ReconcileState, tuple[timedelta, ...]]:
        """Return the decision, the state of the autoscaler, and how long each metric read took."""
        state = self.state.for_object(key, stored.metadata.uid)
        state = state or self._restore(key, stored, plan.spec, self._dependencies.clock())
        if state.history.unknown:
            await continue_in_task()
            await self._writer.settle(self._effective(stored, plan.spec, state), state)
        effective = self._effective(stored, plan.spec, state)
        observation = None if plan.problems else await self._observer.observe(key, effective, plan)
        now = self._dependencies.clock()
        if state.history.unknown and observation is not None and isinstance(observation.target, ScaleTarget):
            self._writer.settle_observed(observation.target.replicas, effective, state)
            effective = self._effective(stored, plan.spec, state)
        effective = without_future_times(effective, now)
        if observation is None:
            decision = decide_invalid_spec(
                autoscaler=effective, problems=plan.problems, history=state.history, gates=self._gates, now=now
            )
            return decision, state, ()
        decision = decide(
            autoscaler=effective,
            observation=observation,
            history=state.history,
            settings=self._settings,
            gates=self._gates,
            now=now,
        )
        in_flight = bool(state.history.unknown) or may_be_in_flight(state, now)
        return clear_stale_zero(decision, in_flight=in_flight), state, observation.read_durations

    def _restore(self, key: str, stored: Autoscaler, spec: Spec, now: datetime) -> ReconcileState:
        """Create the state of an autoscaler from the history in its status; discard an unreadable one."""
        try:
            history = persistence.decode_history(stored.status.controller_state, now)
            persisted = persistence.fingerprint(history, spec, now) if stored.status.controller_state else None
        except persistence.UnreadableState as error:
            history, persisted = History(), persistence.NOT_PERSISTED
            self._dependencies.events.record(stored, state_discarded(str(error)))
            self._reporter.report_discarded_state(key, str(error))
        state = self.state[key] = ReconcileState(stored.metadata.uid, now, history, persisted=persisted)
        return state

    @staticmethod
    def _effective(stored: Autoscaler, spec: Spec, state: ReconcileState | None) -> Autoscaler:
        """Return the object with its defaults and the pending status."""
        status = with_pending_status(stored.status, state.pending_status if state is not None else None)
        return replace(stored, spec=spec, status=status)

    def _forget(self, key: str) -> None:
        self.state.pop(key, None)
        self._backoff.forget(key)
        self.plans.remove(key)
        self._observer.forget(key)
        self._observer.owners.update(POD_AUTOSCALER, key, None)
        self._reporter.report_deleted(key)

    def _next_delay(self, decision: Decision, state: ReconcileState) -> timedelta:
        """Return the delay of `next_delay`, or less if ScaledToZero is pending."""
        delay = next_delay(decision, self._settings.sync_period)
        if state.pending_status is None or not scaled_to_zero(decision.status):
            return delay
        retry: timedelta = _INITIAL_RETRY_DELAY * 2 ** min(state.failed_status_writes - 1, 2)
        return min(delay, retry)


async def _finish_on_cancel(applying: Coroutine[None, None, Decision]) -> Decision:
    """Run to completion even if cancelled, so that the status write follows a scale write at shutdown."""
    task = asyncio.ensure_future(applying)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=_SHUTDOWN_SECONDS)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
