"""Which queries are sent alone instead of in a batch. Pure: the current time is an argument.

When a batch times out, it is unknown which of its queries is slow. So after two timeouts in a row each of its queries
is quarantined: sent alone, until it succeeds once. A query that times out alone is retried with exponential backoff.
A query that the backend rejected as invalid is quarantined without backoff.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache

_MAX_QUERIES: Final = 4096
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
        self._timed_out_once: LRUCache[str, bool] = LRUCache(_MAX_QUERIES)
        self._queries: LRUCache[str, Quarantined] = LRUCache(_MAX_QUERIES)

    def __len__(self) -> int:
        return len(self._queries)

    def get(self, key: str) -> Quarantined | None:
        return self._queries.get(key)

    def record_success(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._timed_out_once.pop(key, None)
            self._queries.pop(key, None)

    def record_invalid(self, key: str) -> None:
        self._queries[key] = Quarantined(is_slow=False)

    def record_timeout(self, keys: Iterable[str], now: float) -> None:
        for key in set(keys):
            if (before := self._queries.get(key)) is not None:
                backoff = min(max(before.backoff * 2, _FIRST_BACKOFF), _MAX_BACKOFF)
                self._queries[key] = Quarantined(is_slow=True, backoff=backoff, retry_at=now + backoff)
            elif key in self._timed_out_once:
                self._queries[key] = Quarantined(is_slow=True)
            else:
                self._timed_out_once[key] = True
