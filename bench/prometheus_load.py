"""Load on Prometheus of many autoscalers on one rule: one query for all of them, compared with one query for each.

A real Prometheus has 10,000 series. Readers with different selectors poll one rule, spread over a period. The left
columns are reads from the snapshot of the rule. On the right, each reader sends its own query through the same client,
like adapters without snapshots; the refresh of the snapshot continues. Run with ``python -m bench.prometheus_load``.
"""

import argparse
import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from adapter.backends.prometheus.backend import PrometheusBackend
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.settings import CircuitBreakerSettings
from adapter.errors import AdapterError
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.process import clock, tune_garbage_collector
from adapter.rules.query_builder import Query
from adapter.rules.rule import Rule
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.values.selector import Selector, parse
from bench.process_stats import cpu
from tests.prometheus.fixed_responses import MANY, NOW, SAMPLES
from tests.prometheus.server import Server, prometheus

_READERS = (1, 100, 1_000, 10_000)
_NAMESPACES = 10
_TIMED_READS = 20_000


@dataclass(frozen=True)
class Cost:
    """Queries, CPU time and latency of one polling period."""

    queries: int
    cpu: float
    prometheus_cpu: float
    p99: float
    failed: int


class Rig:
    """A Prometheus server and a reader with one rule."""

    def __init__(self, server: Server, period: float) -> None:
        self.server, self.period = server, period
        self.backend = _backend(server, sample_times=True)
        self.plain = _backend(server, sample_times=False)
        rule = Rule("many", backend="prometheus", query="many", interval=timedelta(seconds=period))
        self.reader = MetricReader(RuleRegistry([rule]), Sources(Fetcher({"prometheus": self.backend}, clock)), clock)

    async def from_snapshot(self, number: int, selector: Selector) -> None:
        await self.reader.read_samples(f"n{number % _NAMESPACES}", "many", selector)

    async def by_query(self, number: int, _: Selector) -> None:
        """Send a query for this reader alone."""
        text = f'many{{queue="q{number}",namespace="n{number % _NAMESPACES}"}}'
        await self.plain.fetch(Query("prometheus", text), timedelta(seconds=self.period))

    async def poll(self, readers: int, read: Callable[[int, Selector], Awaitable[None]]) -> Cost:
        """Run all readers once, spread over one period."""
        selectors = [parse(f"queue=q{number % MANY}") for number in range(readers)]
        durations: list[float] = []
        failed = 0

        async def one(number: int) -> None:
            nonlocal failed
            await asyncio.sleep(self.period * number / readers)
            started = time.perf_counter()
            try:
                await read(number % MANY, selectors[number])
            except AdapterError:
                failed += 1
            durations.append(time.perf_counter() - started)

        before = await self._measure()
        await asyncio.gather(asyncio.sleep(self.period), *(one(number) for number in range(readers)))
        after = await self._measure()
        p99 = statistics.quantiles(durations, n=100)[98] if len(durations) > 1 else durations[0]
        return Cost(int(after[0] - before[0]), after[1] - before[1], after[2] - before[2], p99, failed)

    async def _measure(self) -> tuple[float, float, float]:
        """Return the number of queries at Prometheus, the CPU seconds of this process and those of Prometheus."""
        name = "prometheus_http_requests_total"
        queries = await asyncio.to_thread(lambda: self.server.own_metric(name, handler="/api/v1/query"))
        return queries, time.process_time(), cpu(self.server.program.pid)

    async def one_read(self) -> tuple[float, float]:
        """Return the median and the 99th percentile of single reads from the snapshot, in seconds."""
        selectors = [parse(f"queue=q{number % MANY}") for number in range(_TIMED_READS)]
        await self.from_snapshot(0, selectors[0])
        durations = []
        for number, selector in enumerate(selectors):
            started = time.perf_counter()
            await self.from_snapshot(number % MANY, selector)
            durations.append(time.perf_counter() - started)
        cuts = statistics.quantiles(durations, n=100)
        return cuts[49], cuts[98]


def _backend(server: Server, *, sample_times: bool) -> PrometheusBackend:
    settings = Prometheus(
        url=server.url,
        parameters={"time": str(NOW)},
        max_connections=8,
        sample_times=sample_times,
        circuit_breaker=CircuitBreakerSettings(failure_threshold=1_000_000),
    )
    return PrometheusBackend("prometheus", settings, clock)


async def run(period: float) -> int:
    tune_garbage_collector()
    with tempfile.TemporaryDirectory() as folder, prometheus(Path(folder) / "data", samples=SAMPLES) as server:
        rig = Rig(server, period)
        print(f"{MANY} series, one rule, {period:g} s of polling, each reader once")
        print(f"{'':>8} | {'from the snapshot':^44} | {'one query each':^44}")
        heads = f"{'queries':>8}{'cpu':>10}{'prom. cpu':>10}{'p99 of a read':>16}"
        print(f"{'readers':>8} | {heads} | {heads}")
        median, p99 = await rig.one_read()  # the first read fetches
        queries = [await _row(rig, readers) for readers in _READERS]
        await rig.reader.sources.aclose()
        await rig.plain.aclose()
    print(f"a read from a snapshot of {MANY} series: median {median * 1e6:.1f} µs, p99 {p99 * 1e6:.1f} µs")
    independent = max(queries) <= min(queries) + 1  # a period can contain one more refresh
    print(f"number of queries is independent of readers: {'yes' if independent else 'NO'}")
    return 0 if independent else 1  # counts are exact; times are noisy and only printed


async def _row(rig: Rig, readers: int) -> int:
    snapshot, direct = await rig.poll(readers, rig.from_snapshot), await rig.poll(readers, rig.by_query)
    failed = f"  {direct.failed} failed" if direct.failed else ""
    print(f"{readers:>8} | {_columns(snapshot)} | {_columns(direct)}{failed}")
    return snapshot.queries


def _columns(cost: Cost) -> str:
    return f"{cost.queries:>8}{cost.cpu:>9.2f}s{cost.prometheus_cpu:>9.2f}s{cost.p99 * 1000:>13.2f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="polling period; the sync period of an HPA is 15")
    seconds = parser.parse_args().seconds
    if shutil.which("prometheus") is None:
        print("NOT MEASURED: prometheus is not installed (package prometheus)")
        return 1 if os.environ.get("CI") == "true" else 0
    return asyncio.run(run(seconds))


if __name__ == "__main__":
    sys.exit(main())
