"""Which queries are sent alone instead of in a batch. Pure: the current time is an argument.

When a batch times out, it is unknown which of its queries is slow. So after two timeouts in a row each of its queries
is quarantined: sent alone, until it succeeds once. A query that times out alone is retried with exponential backoff.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache

_MAX_QUERIES: Final = 4096
_TIMEOUTS_TO_QUARANTINE: Final = 2
_FIRST_BACKOFF: Final = 30.0
_MAX_BACKOFF: Final = 60.0
"""Seconds: how long a recovery of a slow query, or of the whole backend, can remain unnoticed."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Why and until when a query is quarantined."""

    is_slow: bool
    """False: it is invalid."""

    backoff: float = 0.0
    retry_at: float = 0.0


class Quarantine:
    """The quarantined queries of one backend, by key."""

    def __init__(self) -> None:
        self._timeouts: LRUCache[str, int] = LRUCache(_MAX_QUERIES)
        self._queries: LRUCache[str, Quarantined] = LRUCache(_MAX_QUERIES)

    def __len__(self) -> int:
        return len(self._queries)

    def get(self, key: str) -> Quarantined | None:
        """Return why a query is quarantined; None if it is not."""
        return self._queries.get(key)

    def record_success(self, keys: Iterable[str]) -> None:
        """Return queries to the batch."""
        for key in keys:
            self._timeouts.pop(key, None)
            self._queries.pop(key, None)

    def record_invalid(self, key: str) -> None:
        """Quarantine a query that the backend rejected; it is sent alone without backoff until it is accepted."""
        self._queries[key] = Quarantined(is_slow=False)

    def record_timeout(self, keys: Iterable[str], now: float) -> None:
        """Count a timeout of a batch or of a quarantined query."""
        for key in dict.fromkeys(keys):
            if (before := self._queries.get(key)) is not None:
                backoff = min(max(before.backoff * 2, _FIRST_BACKOFF), _MAX_BACKOFF)
                self._queries[key] = Quarantined(is_slow=True, backoff=backoff, retry_at=now + backoff)
            elif (count := self._timeouts.get(key, 0) + 1) < _TIMEOUTS_TO_QUARANTINE:
                self._timeouts[key] = count
            else:
                self._queries[key] = Quarantined(is_slow=True)
