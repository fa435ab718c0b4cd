"""Work queue of autoscaler keys with due times, like client-go's delaying queue.

A key waits until it is due; an earlier due time replaces a later one. It is then ready, at most once. A key that
becomes ready while it is being processed is processed once more afterwards. The time is an argument, so the same
queue runs in the controller and in tests with virtual time.
"""

from collections import deque
from datetime import datetime
from heapq import heappop, heappush


class WorkQueue:
    """Keys that are waiting, ready or being processed."""

    def __init__(self) -> None:
        self._ready: deque[str] = deque()
        self._dirty: set[str] = set()
        """Keys that are ready, or will be ready when their current processing ends."""
        self._processing: set[str] = set()
        self._due: dict[str, datetime] = {}
        self._waiting: list[tuple[datetime, str]] = []
        """A heap over ``_due``; entries that were replaced by an earlier due time remain in it and are skipped."""

    def add(self, key: str) -> None:
        """Make a key ready now."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._ready.append(key)

    def add_at(self, key: str, due: datetime) -> None:
        """Make a key ready at a time; if it is already waiting, the earlier time applies."""
        known = self._due.get(key)
        if known is None or due < known:
            self._due[key] = due
            heappush(self._waiting, (due, key))

    def take(self, now: datetime) -> str | None:
        """Return the next ready key and mark it as being processed; None if no key is ready."""
        while (due := self.next_due()) is not None and due <= now:
            _, key = heappop(self._waiting)
            del self._due[key]
            self.add(key)
        if not self._ready:
            return None
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def done(self, key: str) -> None:
        """End the processing of a key; it is ready again if it was added in the meantime."""
        self._processing.discard(key)
        if key in self._dirty:
            self._ready.append(key)

    def next_due(self) -> datetime | None:
        while self._waiting and self._due.get(self._waiting[0][1]) != self._waiting[0][0]:
            heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None
