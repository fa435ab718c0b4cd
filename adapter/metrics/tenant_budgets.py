"""The resource budget of each namespace with ``ExternalMetric`` objects: queries per minute and series.

``adapter.backends.resilience.rate_limit`` limits concurrent queries. Queries of the operator's rules have no budget.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from weakref import WeakValueDictionary

from cachetools import LRUCache

from adapter.config.model import TenantLimits
from adapter.errors import OverBudget
from adapter.metrics.snapshot import Snapshot
from adapter.rules.query_builder import Query

_MAX_NAMESPACES: Final = 4096
_REFRESHED_SHARE: Final = 0.8
QUERIES_PER_MINUTE: Final = "queriesPerMinute"
MAX_CONCURRENT_QUERIES: Final = "maxConcurrentQueries"
MAX_SERIES: Final = "maxSeries"
MAX_CONNECTIONS: Final = "maxConnections"
"""Not one of ``tenantLimits``: the connections of a backend, which all namespaces share."""


@dataclass(slots=True)
class Usage:
    """What a namespace uses of its budget."""

    available_queries: float
    """Of the token bucket, at ``updated_at``."""

    updated_at: float
    snapshots: WeakValueDictionary[Hashable, Snapshot] = field(default_factory=WeakValueDictionary)
    """The snapshots in memory, by query."""

    refused: Counter[str] = field(default_factory=Counter)
    """Refused queries, by limit."""

    refused_at: dict[str, float] = field(default_factory=dict)
    """Time of the last refusal, by limit."""

    @property
    def series(self) -> int:
        return sum(len(snapshot.series) for snapshot in self.snapshots.values())

    def refill(self, per_minute: int, now: float) -> None:
        added = (now - self.updated_at) * per_minute / 60
        self.available_queries, self.updated_at = min(per_minute, self.available_queries + added), now


class TenantBudgets:
    """The usage of all tenants, by namespace."""

    def __init__(
        self,
        limits: Callable[[], TenantLimits] = TenantLimits,
        on_refused: Callable[[str], None] = lambda _limit: None,
    ) -> None:
        """Create budgets; ``on_refused`` is called with the limit of each refused query."""
        self._limits = limits
        self._on_refused = on_refused
        self._usages: LRUCache[str, Usage] = LRUCache(_MAX_NAMESPACES)

    @property
    def limits(self) -> TenantLimits:
        return self._limits()

    def take_query(self, query: Query) -> None:
        """Count a query; raise ``OverBudget`` if the namespace has sent too many."""
        if not query.tenant:
            return
        limit, usage = self.limits.queries_per_minute, self._usage(query.tenant)
        usage.refill(limit, asyncio.get_running_loop().time())
        if usage.available_queries < 1:
            raise self.refusal(query, QUERIES_PER_MINUTE, "use longer intervals or fewer objects")
        usage.available_queries -= 1

    def shortest_interval(self, queries: int) -> timedelta:
        """Return the shortest interval at which a tenant can send this number of queries within its budget.

        A part of the budget is left for queries that contain a selector and for retries.
        """
        return timedelta(minutes=1) * queries / (self.limits.queries_per_minute * _REFRESHED_SHARE)

    def store(self, query: Query, snapshot: Snapshot) -> None:
        """Count the series of a snapshot while it is in memory; raise ``OverBudget`` if they are too many."""
        if not query.tenant:
            return
        usage = self._usage(query.tenant)
        before = usage.snapshots.pop(query.key, None)
        if usage.series + len(snapshot.series) > self.limits.max_series:
            if before is not None:
                usage.snapshots[query.key] = before
            raise self.refusal(query, MAX_SERIES, "aggregate series in the query or use fewer objects")
        usage.snapshots[query.key] = snapshot

    def refusal(self, query: Query, limit: str, advice: str) -> OverBudget:
        """Record that a query is refused; return the error to raise."""
        self.record_refusal(query, limit)
        return OverBudget(f"namespace {query.tenant!r} has reached tenantLimits.{limit}: {advice}")

    def record_refusal(self, query: Query, limit: str) -> None:
        if query.tenant:
            usage = self._usage(query.tenant)
            usage.refused[limit] += 1
            usage.refused_at[limit] = asyncio.get_running_loop().time()
            self._on_refused(limit)

    def __iter__(self) -> Iterator[tuple[str, Usage]]:
        limit, now = self.limits.queries_per_minute, asyncio.get_running_loop().time()
        for namespace, usage in sorted(self._usages.items()):
            usage.refill(limit, now)
            yield namespace, usage

    def _usage(self, namespace: str) -> Usage:
        usage = self._usages.get(namespace)
        if usage is None:
            now = asyncio.get_running_loop().time()
            usage = self._usages[namespace] = Usage(self.limits.queries_per_minute, now)
        return usage
