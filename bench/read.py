"""What a read costs that is answered from a snapshot: 10,000 series, 10,000 readers with selectors of their own.

    python -m bench.read

Processor time, so that a busy machine does not matter. Beside it stands what the same read costs by looking at all
series, and a ``json.loads`` of one served answer, as a yardstick of this machine's speed.
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
ANSWER = json.dumps(
    {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [{"metricName": "queue", "metricLabels": {"queue": "q1", "namespace": "n1"}, "value": "1"}],
    }
)


class Backend:
    """Ten thousand queues."""

    name = "bench"

    def __init__(self) -> None:
        self.asked = 0
        self.rows = tuple(
            RawSample(float(number), NOW, {"namespace": f"n{number % NAMESPACES}", "queue": f"q{number}", "job": "mq"})
            for number in range(SERIES)
        )

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:  # noqa: ARG002
        """Give all of them."""
        self.asked += 1
        return self.rows

    async def ping(self) -> None:
        """Be there."""

    async def aclose(self) -> None:
        """Have nothing to close."""


async def main() -> None:
    """Read, and print what it cost."""
    backend = Backend()
    rule = Rule("queue", backend="b", query="queue_depth")
    reader = MetricReader(RuleRegistry([rule]), Sources(Fetcher({"b": backend}, lambda: NOW)), lambda: NOW)
    readers = [(f"n{number % NAMESPACES}", parse(f"queue=q{number}")) for number in range(SERIES)]
    await reader.read_samples(*_first(readers))
    for title in ("first round", "second round"):
        _print(title, [await _timed(reader, namespace, selector) for namespace, selector in readers])
    _print("looking at all", [_looking(backend.rows, namespace, selector) for namespace, selector in readers[:200]])
    _print("json.loads", [_yardstick() for _ in range(SERIES)])
    print(f"{'queries sent':<16} {backend.asked} for {2 * SERIES + 1} reads")
    await reader.sources.aclose()


def _first(readers: list[tuple[str, Selector]]) -> tuple[str, str, Selector]:
    namespace, selector = readers[0]
    return namespace, "queue", selector


async def _timed(reader: MetricReader, namespace: str, selector: Selector) -> float:
    started = time.thread_time()
    await reader.read_samples(namespace, "queue", selector)
    return time.thread_time() - started


def _looking(rows: tuple[RawSample, ...], namespace: str, selector: Selector) -> float:
    started = time.thread_time()
    _ = [row for row in rows if row.labels.get("namespace") == namespace and selector.matches(row.labels)]
    return time.thread_time() - started


def _yardstick() -> float:
    started = time.thread_time()
    json.loads(ANSWER)
    return time.thread_time() - started


def _print(title: str, seconds: list[float]) -> None:
    cuts = statistics.quantiles(seconds, n=100)
    print(f"{title:<16} p50 {cuts[49] * 1e6:8.1f} µs   p99 {cuts[98] * 1e6:8.1f} µs")


if __name__ == "__main__":
    asyncio.run(main())
