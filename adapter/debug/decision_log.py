"""The decision log: the last decision and the timeline of every autoscaler, and notification of changes.

The controller calls it for each decision (``autoscaler.ports.DecisionListener``), so these calls must be cheap: they
store a reference to the decision, derive its states, and append one packed point to the timeline.
"""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapter.debug.timeline import Timeline
from autoscaler.algorithm.display_state import SEVERITY_RANK, DisplayState, display_states
from autoscaler.sharding.held_shards import HeldShards
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision

MAX_BYTES: Final = 64 * 1024 * 1024
"""Limit for all timelines together: the last 100 changes for each of 20,000 autoscalers with one metric, which is half
an hour if every reconcile changes something."""

_MAX_TIMELINE_BYTES: Final = 64 * 1024
"""Limit for one timeline: six hours if every reconcile changes something."""


@dataclass(slots=True)
class LoggedAutoscaler:
    """The log entry of one autoscaler."""

    autoscaler: Autoscaler
    """The object that the last decision was made for."""

    decision: Decision
    states: tuple[DisplayState, ...]
    """Most severe first."""

    since: datetime
    """When the most severe state began."""

    timeline: Timeline
    severity_rank: int
    """Sort key of lists, most severe first. Stored, because sorting a large fleet would compute it for each entry."""


class DecisionLog:
    """The log entries of all autoscalers that this process reconciles, by key."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.version = 0
        """Incremented by every change."""

        self.outdated_since: datetime | None = None
        """The time of the last decision, if this process is no longer the leader; None if the entries are current."""

        self._entries: dict[str, LoggedAutoscaler] = {}
        self._max_bytes = max_bytes
        self._changed = asyncio.Event()
        """Set by the next change, which replaces it."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[str, LoggedAutoscaler]]:
        return iter(self._entries.items())

    def get(self, key: str) -> LoggedAutoscaler | None:
        """Return the entry of an autoscaler; None if there is no decision for it."""
        return self._entries.get(key)

    def on_decision(self, key: str, autoscaler: Autoscaler, decision: Decision) -> None:
        states, previous = display_states(decision), self._entries.get(key)
        if previous is not None and previous.autoscaler.metadata.uid != autoscaler.metadata.uid:
            previous = None  # a new object with the same name
        timeline = Timeline() if previous is None else previous.timeline
        is_same_state = previous is not None and previous.states[0].name is states[0].name
        since = states[0].since or (previous.since if previous is not None and is_same_state else decision.at)
        rank = SEVERITY_RANK[states[0].name]
        self._entries[key] = LoggedAutoscaler(autoscaler, decision, states, since, timeline, rank)
        timeline.add(decision, min(_MAX_TIMELINE_BYTES, self._max_bytes // len(self._entries)))
        self._notify()

    def on_deleted(self, key: str) -> None:
        self._entries.pop(key, None)
        self._notify()

    def on_leadership_acquired(self, keys: Collection[str], shards: HeldShards = HeldShards()) -> None:  # noqa: B008 - immutable
        """Remove the entries of autoscalers that were deleted, or are controlled by another process now."""
        del shards
        self.outdated_since = None
        existing = frozenset(keys)
        self._entries = {key: entry for key, entry in self._entries.items() if key in existing}
        self._notify()

    def on_leadership_lost(self) -> None:
        """Keep the entries: the loss is often short, and they are the evidence of what happened before it."""
        self.outdated_since = max((entry.decision.at for entry in self._entries.values()), default=None)
        self._notify()

    async def wait_for_change(self, version: int, timeout: float) -> None:  # noqa: ASYNC109 - returns on timeout
        """Wait until the version differs from ``version``, at most ``timeout`` seconds."""
        if self.version == version:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._changed.wait()

    def _notify(self) -> None:
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()
