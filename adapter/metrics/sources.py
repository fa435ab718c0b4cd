"""The caches between the reader and the backends."""

from collections.abc import Callable

from adapter.metrics.fetcher import Fetcher
from adapter.metrics.query_cache import QueryCache
from adapter.metrics.snapshots import Snapshots
from adapter.rules.rule import Rule


class Sources:
    """The caches that queries are read through: snapshots, or the query cache for queries that contain a selector."""

    def __init__(
        self,
        fetcher: Fetcher,
        on_snapshot_read: Callable[[bool], None] = lambda _is_hit: None,
        on_query_cache_read: Callable[[bool], None] = lambda _is_hit: None,
    ) -> None:
        self.fetcher = fetcher
        self.snapshots = Snapshots(fetcher, on_snapshot_read)
        self.query_cache = QueryCache(fetcher, on_read=on_query_cache_read)

    def of(self, rule: Rule) -> Snapshots | QueryCache:
        return self.query_cache if rule.is_template else self.snapshots

    async def aclose(self) -> None:
        await self.snapshots.aclose()
        await self.query_cache.aclose()
        for backend in self.fetcher.backends.values():
            await backend.aclose()
