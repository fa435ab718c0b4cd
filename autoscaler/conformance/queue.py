"""Run the vectors of upstream's work queue: which autoscaler is reconciled when, in virtual time."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from autoscaler.conformance.inputs import EPOCH, Comparison, Json
from autoscaler.controller.queue import WorkQueue


def run(trace: Json, document: Json) -> Comparison:
    """Run a trace, and return its reconciles."""
    reconciles = sorted(VirtualController(trace, document.get("resyncPhaseMillis", 0)).reconciles())
    return {"reconciles": trace["reconciles"]}, {"reconciles": [{"atMillis": at, "hpa": key} for at, key in reconciles]}


class VirtualController:
    """Simulate workers with a fixed reconcile duration, changes of autoscalers by users, and a periodic resync."""

    def __init__(self, trace: Json, resync_phase: int) -> None:
        self._actions = [(_time(action["atMillis"]), action["do"], action["hpa"]) for action in trace["actions"]]
        self._actions.sort(key=lambda action: action[0])
        self._until = _time(trace["untilMillis"])
        self._period = timedelta(seconds=trace["syncPeriod"])
        self._reconcile_duration = timedelta(milliseconds=trace["reconcileMillis"])
        self._reconciles_on_spec_change: bool = trace["HPAGeneration"]
        self._workers: int = trace["workers"]
        self._next_resync = _time(resync_phase)
        self._busy: list[tuple[datetime, str]] = []
        self._existing: set[str] = set()
        self._queue = WorkQueue()

    def reconciles(self) -> Iterator[tuple[int, str]]:
        """Run the trace, and yield time and key of each reconcile of an existing autoscaler."""
        now = EPOCH
        while now <= self._until:
            self._end_reconciles(now)
            self._act(now)
            self._resync(now)
            yield from self._start_reconciles(now)
            now = self._next_moment(now)

    def _next_moment(self, now: datetime) -> datetime:
        moments = [self._until + timedelta(milliseconds=1), self._next_resync]
        moments += [time for time, _, _ in self._actions[:1]]
        moments += [end for end, _ in self._busy]
        due = self._queue.next_due()
        if due is not None and len(self._busy) < self._workers:
            moments.append(due)
        return min(moment for moment in moments if moment > now)

    def _act(self, now: datetime) -> None:
        while self._actions and self._actions[0][0] <= now:
            _, verb, key = self._actions.pop(0)
            if verb == "delete":
                self._existing.discard(key)
            elif verb == "create" or (verb == "spec" and self._reconciles_on_spec_change):
                self._existing.add(key)
                self._queue.add(key)
            else:
                self._queue.add_at(key, now + self._period)

    def _resync(self, now: datetime) -> None:
        while self._next_resync <= now:
            if self._next_resync == now:
                for key in sorted(self._existing):
                    self._queue.add_at(key, now + self._period)
            self._next_resync += self._period

    def _start_reconciles(self, now: datetime) -> Iterator[tuple[int, str]]:
        while len(self._busy) < self._workers and (key := self._queue.take(now)) is not None:
            if key not in self._existing:
                self._queue.done(key)
                continue
            yield round((now - EPOCH) / timedelta(milliseconds=1)), key
            self._busy.append((now + self._reconcile_duration, key))
            self._end_reconciles(now)

    def _end_reconciles(self, now: datetime) -> None:
        for end, key in [entry for entry in self._busy if entry[0] <= now]:
            self._busy.remove((end, key))
            self._queue.add_at(key, now + self._period)
            self._queue.done(key)


def _time(millis: int) -> datetime:
    return EPOCH + timedelta(milliseconds=millis)
