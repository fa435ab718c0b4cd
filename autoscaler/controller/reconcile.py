"""One pass over one autoscaler: look it up, see what is true, look at the clock once, decide, act, remember."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from autoscaler.algorithm.conditions import SCALED_TO_ZERO
from autoscaler.algorithm.decide import decide
from autoscaler.algorithm.invalid_spec import refuse
from autoscaler.controller import persistence
from autoscaler.controller.act import act, say, with_unsaid
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.observe import Observer
from autoscaler.controller.owners import POD_AUTOSCALER
from autoscaler.controller.reconcile_plan import Plan, Plans
from autoscaler.controller.reporting import Reporter
from autoscaler.controller.state import Entry, Memory
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.status import TRUE
from autoscaler.types.steps import Held, MetricFailed

log = logging.getLogger(__name__)

_FIRST_RETRY: Final = timedelta(seconds=1)
_LAST_MOMENT: Final = 0.6
"""Seconds: of the two in which another process is to take over, so much may be spent on what must still be written."""

_LAST_TRIES: Final = 3


class Reconciler:
    """Passes over autoscalers, and remembers what it did."""

    def __init__(
        self, world: Dependencies, observer: Observer, settings: Settings, gates: FeatureGates, reporter: Reporter
    ) -> None:
        self.plans = Plans(settings, gates)
        self.memory = Memory()
        self._world = world
        self._observer = observer
        self._settings = settings
        self._gates = gates
        self._reporter = reporter

    async def reconcile(self, key: str) -> timedelta | None:
        """Pass over one autoscaler; say when to come again at the latest, or None if it is gone."""
        stored = self._world.autoscalers.get(key)
        if stored is None:
            self._forget(key)
            return None
        began = asyncio.get_running_loop().time()
        plan = self.plans.of(key, stored)
        decision, entry = await self._decide(key, stored, plan)
        acting = act(
            decision,
            stored=stored,
            known=self._as_known(stored, plan, entry),
            entry=entry,
            world=self._world,
            settings=self._settings,
        )
        decision = await (acting if decision.scale_to is None else _to_the_end(acting))
        took = timedelta(seconds=asyncio.get_running_loop().time() - began)
        self._reporter.passed(key, stored, plan.spec, decision, took)
        return self._come_again(decision, entry)

    async def leave(self) -> None:
        """Try to say what could not be said, in the last moment, for whoever comes after us."""
        unsaid = [(key, entry) for key, entry in self.memory.entries() if entry.unsaid is not None]
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_MOMENT):
                await asyncio.gather(*(self._last_words(key, entry) for key, entry in unsaid), return_exceptions=True)

    async def _last_words(self, key: str, entry: Entry) -> None:
        for _ in range(_LAST_TRIES):
            stored = self._world.autoscalers.get(key)
            if stored is None or stored.metadata.uid != entry.uid or entry.decision is None or entry.unsaid is None:
                return
            known = self._as_known(stored, self.plans.of(key, stored), entry)
            await say(entry.decision, stored, known, entry, self._world, self._settings)
            await asyncio.sleep(_LAST_MOMENT / _LAST_TRIES)

    async def _decide(self, key: str, stored: Autoscaler, plan: Plan) -> tuple[Decision, Entry]:
        entry = self.memory.of(key, stored.metadata.uid)
        known = self._as_known(stored, plan, entry)
        if plan.problems:
            now = self._world.clock()
            entry = entry or self._begin(key, stored, plan, now)
            past = entry.history
            return refuse(autoscaler=known, problems=plan.problems, past=past, gates=self._gates, now=now), entry
        seen = await self._observer.observe(key, known, plan)
        now = self._world.clock()
        entry = entry or self._begin(key, stored, plan, now)
        decision = decide(
            autoscaler=known, seen=seen, past=entry.history, settings=self._settings, gates=self._gates, now=now
        )
        return decision, entry

    def _begin(self, key: str, stored: Autoscaler, plan: Plan, now: datetime) -> Entry:
        """Remember what the one before us remembered."""
        past = persistence.recall(stored.status.memory, now)
        kept = persistence.essence(past, plan.spec, now) if stored.status.memory else None
        return self.memory.begin(key, Entry(stored.metadata.uid, past, kept=kept))

    @staticmethod
    def _as_known(stored: Autoscaler, plan: Plan, entry: Entry | None) -> Autoscaler:
        """See the object with its defaults, and with what we know and could not yet tell the API server."""
        status = with_unsaid(stored.status, entry.unsaid if entry is not None else None)
        return replace(stored, spec=plan.spec, status=status)

    def _forget(self, key: str) -> None:
        self.memory.forget(key)
        self.plans.forget(key)
        self._observer.forget(key)
        self._observer.owners.note(POD_AUTOSCALER, key, None)
        self._reporter.gone(key)

    def _come_again(self, decision: Decision, entry: Entry) -> timedelta:
        """Come every period; at the moment a clock or a pause runs out; soon, where a zero is not yet known of."""
        period = self._settings.sync_period
        moments = [_runs_out(step) for step in decision.working]
        waits = [moment - decision.at for moment in moments if moment is not None and moment > decision.at]
        if entry.unsaid is not None and _is_zeroed(decision):
            waits.append(_FIRST_RETRY * 2 ** min(entry.failures - 1, 2))
        return min([period, *waits])


async def _to_the_end(acting: Coroutine[None, None, Decision]) -> Decision:
    """Do not stop between two writes: who is told to stop has a moment left for the second."""
    task = asyncio.ensure_future(acting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=_LAST_MOMENT)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


def _runs_out(step: object) -> datetime | None:
    if isinstance(step, MetricFailed):
        return step.fallback_at
    return step.until if isinstance(step, Held) else None


def _is_zeroed(decision: Decision) -> bool:
    zero = decision.status.condition(SCALED_TO_ZERO)
    return zero is not None and zero.status == TRUE
