"""Comparison of served values with those of another external metrics server, to verify a migration before it.

Values of the other server are never served. It is queried in the background, at most once per interval for each metric,
namespace and selector, and only for metrics that callers read here.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from cachetools import LRUCache

from adapter.errors import AdapterError, NoSeries
from adapter.metrics.fetcher import FetchFailure
from adapter.metrics.query_cache import QueryCache
from adapter.metrics.read_history import ReadKey
from adapter.metrics.reader import ReadTrace
from adapter.rules.delegation import Delegate, delegated_rule
from adapter.rules.evaluation import evaluate
from adapter.rules.query_builder import delegated_query
from adapter.sample import Sample

_MAX_ENTRIES: Final = 1000
_MAX_CONCURRENT: Final = 8


class ComparisonResult(StrEnum):
    """The result of one comparison."""

    SAME = "same"
    """The values differ by at most the tolerance, or neither server has a value."""

    DIFFERENT = "different"
    ONLY_LOCAL = "only local"
    """Steadyscale has a value, and the other server has none."""

    ONLY_DELEGATE = "only delegate"
    """The other server has a value, and Steadyscale has none."""


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """The value of one server: the sum of all series in thousandths, or the error."""

    milli: int | None
    error: str = ""


@dataclass(slots=True)
class Comparison:
    """The last comparison of one metric, namespace and selector, and the counts of all of them."""

    time: datetime
    local: ComparedValue
    remote: ComparedValue
    result: ComparisonResult
    comparisons: int
    differences: int
    different_since: datetime | None = None
    """Start of the current run of differences; None if the last values were the same."""


class Comparisons:
    """Compares the reads of a ``MetricReader`` that calls ``on_read`` after each read."""

    def __init__(
        self,
        query_cache: QueryCache,
        clock: Callable[[], datetime],
        delegate: Callable[[], Delegate | None],
        on_comparison: Callable[[ComparisonResult], None] = lambda _result: None,
    ) -> None:
        self._query_cache = query_cache
        self._clock = clock
        self._delegate = delegate
        self._on_comparison = on_comparison
        self._latest: LRUCache[ReadKey, Comparison] = LRUCache(_MAX_ENTRIES)
        self._next_time: LRUCache[ReadKey, float] = LRUCache(_MAX_ENTRIES)
        self._tasks: set[asyncio.Task[None]] = set()

    def on_read(self, trace: ReadTrace) -> None:
        """Start a comparison of this read, if comparing is enabled, due and not at its concurrency limit."""
        delegate = self._delegate()
        if delegate is None or not delegate.compare or len(self._tasks) >= _MAX_CONCURRENT:
            return
        now = asyncio.get_running_loop().time()
        if self._next_time.get(trace.key, 0.0) > now or not trace.key.is_cacheable:
            return
        self._next_time[trace.key] = now + delegate.interval.total_seconds()
        task = asyncio.create_task(self._compare(trace, delegate), name=f"compare {trace.key.metric}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def __iter__(self) -> Iterator[tuple[ReadKey, Comparison]]:
        return iter(list(self._latest.items()))

    async def aclose(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _compare(self, trace: ReadTrace, delegate: Delegate) -> None:
        local = _compared_value(trace.samples) if trace.error is None else _failed(trace.error)
        remote = await self._read_delegate(trace.key, delegate)
        result = compare(local, remote, delegate.tolerance)
        now, before, differs = self._clock(), self._latest.get(trace.key), result is not ComparisonResult.SAME
        comparison = Comparison(now, local, remote, result, comparisons=1, differences=int(differs))
        if before is not None:
            comparison.comparisons += before.comparisons
            comparison.differences += before.differences
        if differs:
            comparison.different_since = (before and before.different_since) or now
        self._latest[trace.key] = comparison
        self._on_comparison(result)

    async def _read_delegate(self, key: ReadKey, delegate: Delegate) -> ComparedValue:
        rule = delegated_rule(delegate, *key)
        fetched = await self._query_cache.get(delegated_query(rule, key.namespace), rule.interval, rule.deadline)
        if isinstance(fetched, FetchFailure):
            return _failed(fetched.error)
        try:
            samples = evaluate(rule, fetched.series, self._clock(), lambda: "the response contains no series")
        except AdapterError as error:
            return _failed(error)
        return _compared_value(samples)


def compare(local: ComparedValue, remote: ComparedValue, tolerance: float) -> ComparisonResult:
    if local.milli is None or remote.milli is None:
        if local.milli is remote.milli:
            return ComparisonResult.SAME
        return ComparisonResult.ONLY_DELEGATE if local.milli is None else ComparisonResult.ONLY_LOCAL
    is_close = abs(local.milli - remote.milli) <= tolerance * max(local.milli, remote.milli)
    return ComparisonResult.SAME if is_close else ComparisonResult.DIFFERENT


def _compared_value(samples: tuple[Sample, ...]) -> ComparedValue:
    return ComparedValue(sum(sample.milli for sample in samples))


def _failed(error: AdapterError) -> ComparedValue:
    failure = error.failure or NoSeries.failure
    return ComparedValue(None, ": ".join(part for part in (failure.value, error.message) if part))
