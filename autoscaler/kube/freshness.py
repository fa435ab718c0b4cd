"""The age of what is known about a watched collection.

An open watch proves nothing: its connection may be stalled, or its server may be cut off from etcd. The current
resourceVersion is therefore read at an interval. As soon as the watch has reached it, by an event or a bookmark, all
changes up to the time of that read are known. A resourceVersion lower than one seen before means that the cluster was
restored from a backup.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from autoscaler.kube.objects import is_older

MAX_AGE: Final = timedelta(seconds=90)
"""The age from which objects are stale: no decision that depends on them is applied."""

LIST_AFTER: Final = timedelta(seconds=70)
"""The age from which the collection is listed again, because the watch is stalled or sends no bookmarks."""


@dataclass(eq=False)
class Freshness:
    """The progress of one watch; times are seconds of ``now``."""

    resource: str
    now: Callable[[], float]
    resource_version: str = ""
    """The resourceVersion up to which all changes are known."""

    went_back: bool = False
    """Whether the last list had a lower resourceVersion than was known before."""

    _known_at: float = float("-inf")
    _is_doubtful: bool = False
    _checks: "deque[tuple[float, str]]" = field(default_factory=lambda: deque(maxlen=16))
    """Reads of the current resourceVersion that the watch has not reached yet, with their times."""

    @property
    def age(self) -> float:
        """Seconds since the last time of which the complete state is known; infinite before the first list."""
        return self.now() - self._known_at

    @property
    def is_stale(self) -> bool:
        return self.age > MAX_AGE.total_seconds()

    @property
    def must_list(self) -> bool:
        """Whether the watch cannot be resumed: nothing is known yet, or it may have missed changes."""
        return self._is_doubtful or not self.resource_version or self.age > LIST_AFTER.total_seconds()

    @property
    def until_list(self) -> float:
        """Seconds until the collection must be listed again if the watch makes no progress."""
        return LIST_AFTER.total_seconds() - self.age

    def doubt(self) -> None:
        """Record that a change may have been missed."""
        self._is_doubtful = True

    def listed(self, started: float, resource_version: str) -> None:
        """Record a complete list that was started at a time."""
        self.went_back = is_older(resource_version, self.resource_version)
        self._known_at, self.resource_version, self._is_doubtful = started, resource_version, False
        self._checks.clear()

    def progressed(self, resource_version: str) -> None:
        """Record an event or a bookmark of the watch."""
        self.resource_version = resource_version
        while self._checks and not is_older(resource_version, self._checks[0][1]):
            self._known_at = max(self._known_at, self._checks.popleft()[0])

    def checked(self, started: float, current: str, before: str) -> bool:
        """Record a read of the current resourceVersion; return False if it is lower than ``before``.

        ``before`` is the value of ``resource_version`` when the read was started.
        """
        if is_older(current, before):
            self.doubt()
            return False
        self._checks.append((started, current))
        self.progressed(self.resource_version)
        return True
