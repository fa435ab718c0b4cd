"""Which autoscaler to look at next, and when: keys with due times, where the same key twice is one visit.

Two stages, as upstream's work queue has them. A key waits until it is due, and an earlier due time wins over a later
one; then it is ready, at most once. A key that becomes ready while it is being visited is visited once more afterwards.
Time is an argument, so the same queue runs in the controller and in virtual time.
"""

from collections import deque
from datetime import datetime
from heapq import heappop, heappush


class WorkQueue:
    """Keys that are ready, waiting, or being visited."""

    def __init__(self) -> None:
        self._ready: deque[str] = deque()
        self._wanted: set[str] = set()
        """Ready, or to be ready as soon as the current visit ends."""
        self._visiting: set[str] = set()
        self._due: dict[str, datetime] = {}
        self._waiting: list[tuple[datetime, str]] = []
        """A heap over ``_due``; entries that an earlier due time has overtaken stay in it and are passed over."""

    def add(self, key: str) -> None:
        """Let a key be visited as soon as possible."""
        if key in self._wanted:
            return
        self._wanted.add(key)
        if key not in self._visiting:
            self._ready.append(key)

    def add_at(self, key: str, due: datetime) -> None:
        """Let a key be visited at a time; if it is waiting already, the earlier time counts."""
        known = self._due.get(key)
        if known is None or due < known:
            self._due[key] = due
            heappush(self._waiting, (due, key))

    def take(self, now: datetime) -> str | None:
        """Begin the visit of the next key that is ready by now; None: there is none."""
        self._wake(now)
        if not self._ready:
            return None
        key = self._ready.popleft()
        self._wanted.discard(key)
        self._visiting.add(key)
        return key

    def done(self, key: str) -> None:
        """End a visit; if the key was wanted meanwhile, it is ready again."""
        self._visiting.discard(key)
        if key in self._wanted:
            self._ready.append(key)

    def next_due(self) -> datetime | None:
        """Tell when the next waiting key is due."""
        while self._waiting and self._due.get(self._waiting[0][1]) != self._waiting[0][0]:
            heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    def _wake(self, now: datetime) -> None:
        while (due := self.next_due()) is not None and due <= now:
            _, key = heappop(self._waiting)
            del self._due[key]
            self.add(key)
