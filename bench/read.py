"""CPU time of a read from a snapshot: 10,000 series, 10,000 readers with different selectors.

    python -m bench.read

CPU time, so that load on the machine does not matter. For comparison: the same read without an index, and
``json.loads`` of one response, as a measure of the machine's speed.
"""

import asyncio
import json
import statistics
import time
from datetime import UTC, datetime, timedelta

from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader, Sources
from adapter.rules.query_builder import Query
from adapter.rules.rule import Rule
from adapter.rules.rule_registry import RuleRegistry
from adapter.sample import RawSample
from autoscaler.values.selector import Selector, parse

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERIES = 10_000
NAMESPACES = 100
RESPONSE = json.dumps(
    {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [{"metricName": "queue", "metricLabels": {"queue": "q1", "namespace": "n1"}, "value": "1"}],
    }
)


class Backend:
    """A backend with 10,000 series."""

    name = "bench"

    def __init__(self) -> None:
        self.fetches = 0
        self.series = tuple(
            RawSample(float(number), NOW, {"namespace": f"n{number % NAMESPACES}", "queue": f"q{number}", "job": "mq"})
            for number in range(SERIES)
        )

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:  # noqa: ARG002
        """Return all series."""
        self.fetches += 1
        return self.series

    async def ping(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""


async def main() -> None:
    """Measure and print."""
    backend = Backend()
    rule = Rule("queue", backend="b", query="queue_depth")
    reader = MetricReader(RuleRegistry([rule]), Sources(Fetcher({"b": backend}, lambda: NOW)), lambda: NOW)
    readers = [(f"n{number % NAMESPACES}", parse(f"queue=q{number}")) for number in range(SERIES)]
    await reader.read_samples(*_first(readers))
    for title in ("first round", "second round"):
        _print(title, [await _timed(reader, namespace, selector) for namespace, selector in readers])
    _print("without index", [_full_scan(backend.series, namespace, selector) for namespace, selector in readers[:200]])
    _print("json.loads", [_json_loads() for _ in range(SERIES)])
    print(f"{'queries sent':<16} {backend.fetches} for {2 * SERIES + 1} reads")
    await reader.sources.aclose()


def _first(readers: list[tuple[str, Selector]]) -> tuple[str, str, Selector]:
    namespace, selector = readers[0]
    return namespace, "queue", selector


async def _timed(reader: MetricReader, namespace: str, selector: Selector) -> float:
    started = time.thread_time()
    await reader.read_samples(namespace, "queue", selector)
    return time.thread_time() - started


def _full_scan(all_series: tuple[RawSample, ...], namespace: str, selector: Selector) -> float:
    started = time.thread_time()
    _ = [each for each in all_series if each.labels.get("namespace") == namespace and selector.matches(each.labels)]
    return time.thread_time() - started


def _json_loads() -> float:
    started = time.thread_time()
    json.loads(RESPONSE)
    return time.thread_time() - started


def _print(title: str, seconds: list[float]) -> None:
    cuts = statistics.quantiles(seconds, n=100)
    print(f"{title:<16} p50 {cuts[49] * 1e6:8.1f} µs   p99 {cuts[98] * 1e6:8.1f} µs")


if __name__ == "__main__":
    asyncio.run(main())
