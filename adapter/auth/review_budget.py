"""Limits on the reviews that clients cause, and the cache of review results.

Every new token needs a TokenReview and every new path a SubjectAccessReview, so a client that invents them, or that
creates many tokens, could flood the API server and delay the reviews of others. A source address or a caller therefore
has a budget. Repeated reviews of accepted tokens and paths, and allowed reads of metrics, cost nothing.
"""

import time
from collections.abc import Awaitable, Callable, Hashable, Iterator, MutableMapping
from typing import Final, Generic, TypeVar

from cachetools import LRUCache

from adapter.errors import TooManyReviews
from adapter.fair_limit import FairLimit

R = TypeVar("R")
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_MAX_ENTRIES: Final = 8192
_MAX_PAYERS: Final = 4096


class ReviewBudget:
    """A token bucket for each payer: a source address or a caller."""

    def __init__(
        self, *, burst: int, per_second: float, max_concurrent: int, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._burst, self._per_second = burst, per_second
        self._timer = timer
        self._in_progress = FairLimit(max_concurrent, TooManyReviews)
        self._balances: LRUCache[str, tuple[float, float]] = LRUCache(_MAX_PAYERS)
        """For each payer: reviews left, and when they were counted."""

    async def pay(
        self, payer: str, review: Callable[[], Awaitable[R]], is_refunded: Callable[[R], bool] = lambda _: False
    ) -> R:
        """Make a review at the payer's expense; raise ``TooManyReviews`` without a review if the budget is used up."""
        balance = self._balance(payer)
        if balance < 1:
            raise TooManyReviews
        with self._in_progress.hold(payer):
            self._set(payer, balance - 1)
            result = await review()
        if is_refunded(result):
            self._set(payer, self._balance(payer) + 1)
        return result

    def _balance(self, payer: str) -> float:
        left, counted = self._balances.get(payer, (float(self._burst), 0.0))
        return min(self._burst, left + (self._timer() - counted) * self._per_second)

    def _set(self, payer: str, left: float) -> None:
        self._balances[payer] = left, self._timer()


class ReviewEntries(MutableMapping[Key, tuple[Value, float]], Generic[Key, Value]):
    """Entries of a ``TTLCache`` of reviews. Rejections are stored apart, so that they displace no accepted caller."""

    def __init__(self, is_accepted: Callable[[Value], bool]) -> None:
        self._is_accepted = is_accepted
        self.accepted: LRUCache[Key, tuple[Value, float]] = LRUCache(_MAX_ENTRIES)
        """Accepted reviews, also expired ones: repeating one costs no budget."""

        self._rejected: LRUCache[Key, tuple[Value, float]] = LRUCache(_MAX_ENTRIES)

    def __getitem__(self, key: Key) -> tuple[Value, float]:
        try:
            return self.accepted[key]
        except KeyError:
            return self._rejected[key]

    def __setitem__(self, key: Key, entry: tuple[Value, float]) -> None:
        entries, others = self.accepted, self._rejected
        if not self._is_accepted(entry[0]):
            entries, others = others, entries
        others.pop(key, None)
        entries[key] = entry

    def __delitem__(self, key: Key) -> None:
        if self.accepted.pop(key, None) is None:
            del self._rejected[key]

    def __iter__(self) -> Iterator[Key]:
        yield from self.accepted
        yield from self._rejected

    def __len__(self) -> int:
        return len(self.accepted) + len(self._rejected)
