"""Requests and CPU time of 500 CloudWatch rules, in batches and one by one.

    python -m bench.backends

The rules are refreshed as in the service, by ``Snapshots``, ``Fetcher`` and the backend, against moto in a process of
its own. The interval is shortened. The result is requests per interval, which at the usual interval of 60 s is
requests per minute.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from adapter.backends.cloudwatch.backend import CloudWatchBackend
from adapter.backends.cloudwatch.query import metric_data_queries, request_items
from adapter.backends.cloudwatch.settings import CloudWatch, CloudWatchParameters
from adapter.backends.connection.aws.client import AwsClient
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.snapshot import Snapshot
from adapter.metrics.snapshots import Snapshots
from adapter.process import clock, tune_garbage_collector
from adapter.rules.query_builder import snapshot_query
from adapter.rules.rule import Rule
from tests.backends.moto_server import REGION, MotoServer

_RULES = 500
_NAMESPACE = "Bench"
_DEADLINE = timedelta(seconds=60)
_MAX_CONCURRENT = 10
_SLEEP_SECONDS = 0.002


@dataclass(frozen=True)
class Cost:
    """The cost of one interval."""

    requests: float
    cpu_seconds: float
    longest_pause: float


class LoopMonitor:
    """Measures how long the event loop is blocked, in CPU time, so that other processes have no effect."""

    def __init__(self) -> None:
        self.longest_pause = 0.0

    async def run(self) -> None:
        """Sleep repeatedly and measure the CPU time of the loop in between."""
        while True:
            before = time.thread_time()
            await asyncio.sleep(_SLEEP_SECONDS)
            self.longest_pause = max(self.longest_pause, time.thread_time() - before)


class Benchmark:
    """A moto server with a metric for each rule and a user who may read them."""

    def __init__(self, server: MotoServer, folder: Path) -> None:
        self.server = server
        server.add_user("reader", "monitoring:GetMetricData")
        files = folder / "id", folder / "secret"
        for file, text in zip(files, server.add_key("reader"), strict=True):
            file.write_text(text)
        self.settings = CloudWatch(
            region=REGION,
            endpoint_url=server.url,
            access_key_id_file=str(files[0]),
            secret_access_key_file=str(files[1]),
        )
        at = clock().replace(second=0, microsecond=0) - timedelta(minutes=1)
        for first in range(0, _RULES, 20):
            data = [
                {"MetricName": f"m{number}", "Timestamp": at, "Value": number} for number in range(first, first + 20)
            ]
            server.client("cloudwatch").put_metric_data(Namespace=_NAMESPACE, MetricData=data)

    async def in_batches(self, interval: float, intervals: int) -> Cost:
        """Refresh all rules for some intervals."""
        backend = CloudWatchBackend("cw", self.settings, clock)
        snapshots = Snapshots(Fetcher({"cw": backend}, clock))
        parameters = [{"namespace": _NAMESPACE, "metric": f"m{number}"} for number in range(_RULES)]
        queries = [snapshot_query(Rule("r", backend="cw", parameters=metric)) for metric in parameters]
        await asyncio.gather(*(snapshots.get(query, timedelta(seconds=interval), _DEADLINE) for query in queries))
        await asyncio.sleep(interval)  # the first refresh may follow immediately

        async def wait(count: int = intervals) -> None:
            await asyncio.sleep(interval * count)

        cost = await self._measure(wait, intervals, lambda: wait(1))
        for number, query in enumerate(queries):
            snapshot = snapshots.peek(query)
            _check(
                [series.value for series in snapshot.series] if isinstance(snapshot, Snapshot) else snapshot, [number]
            )
        await snapshots.aclose()
        await backend.aclose()
        return cost

    async def one_by_one(self) -> Cost:
        """Query all metrics once, with a request for each."""
        client = AwsClient("cloudwatch", self.settings, clock)
        slots = asyncio.Semaphore(_MAX_CONCURRENT)

        async def query(number: int) -> None:
            parameters = CloudWatchParameters(namespace=_NAMESPACE, metric=f"m{number}")
            (item,) = request_items([parameters], clock())
            times = {"StartTime": item.time_range.start, "EndTime": item.time_range.end}
            async with slots:
                response = await client.request(
                    "", "get_metric_data", MetricDataQueries=list(metric_data_queries(item)), **times
                )
            _check(response["MetricDataResults"][0]["Values"], [number])

        async def query_all() -> None:
            await asyncio.gather(*(query(number) for number in range(_RULES)))

        await query(0)  # creates the client
        cost = await self._measure(query_all, 1, query_all)
        await client.aclose()
        return cost

    async def _measure(
        self, work: Callable[[], Awaitable[None]], intervals: int, repeat: Callable[[], Awaitable[None]]
    ) -> Cost:
        """Measure requests and CPU time, then the longest pause in a second run, because the monitor needs CPU, too."""
        self.server.clear_requests()
        started = time.process_time()
        await work()
        cost = Cost(len(self.server.requests()) / intervals, (time.process_time() - started) / intervals, 0)
        monitor = LoopMonitor()
        monitoring = asyncio.create_task(monitor.run())
        await repeat()
        monitoring.cancel()
        return replace(cost, longest_pause=monitor.longest_pause)


def _check(actual: object, expected: object) -> None:
    if actual != expected:
        raise RuntimeError(f"expected {expected}, got {actual}")


@contextmanager
def _benchmark() -> Iterator[Benchmark]:
    with tempfile.TemporaryDirectory() as folder:
        server = MotoServer(Path(folder) / "server")
        server.start()
        try:
            yield Benchmark(server, Path(folder))
        finally:
            server.stop()


async def run(interval: float, intervals: int) -> int:
    with _benchmark() as benchmark:
        tune_garbage_collector()  # as the service does
        single = await benchmark.one_by_one()
        batched = await benchmark.in_batches(interval, intervals)
    print(f"{_RULES} CloudWatch rules, {intervals} intervals of {interval:g} s, against moto")
    print(f"{'':<12}{'requests/interval':>20}{'CPU time':>22}{'longest pause':>18}")
    for name, cost in (("one by one", single), ("in batches", batched)):
        cpu, pause = cost.cpu_seconds * 1000, cost.longest_pause * 1000
        print(f"{name:<12}{cost.requests:>20.2f}{cpu:>19.0f} ms{pause:>15.0f} ms")
    share = batched.cpu_seconds / single.cpu_seconds
    print(f"batches need {share:.2f} of the CPU time; requests/minute at an interval of 60 s: {batched.requests:.2f}")
    return 0 if batched.requests <= 2 else 1  # the count is deterministic; times are not checked


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interval", type=float, default=10.0, help="seconds (60 in a cluster)")
    parser.add_argument("--intervals", type=int, default=3, help="how many to measure")
    arguments = parser.parse_args()
    return asyncio.run(run(arguments.interval, arguments.intervals))


if __name__ == "__main__":
    sys.exit(main())
