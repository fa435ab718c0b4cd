"""What 500 CloudWatch rules cost: calls, and our processor time, beside the same 500 asked one by one.

    python -m bench.backends

Every rule is kept up to date as the service does it, by ``snapshots``, ``fetch`` and the backend, against moto in a
process of its own. The interval is shortened: what is counted is calls in an interval, which at the usual interval of
60 s is calls a minute.
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

from adapter.process import clock
from adapter.backends.cloudwatch.backend import CloudWatchBackend
from adapter.backends.cloudwatch.parameters import CloudWatchParameters
from adapter.backends.cloudwatch.query import Question, asked_now, queries
from adapter.backends.cloudwatch.settings import CloudWatch
from adapter.backends.connection.aws.client import AwsClient
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.snapshot import Snapshot
from adapter.metrics.snapshots import Snapshots
from adapter.rules.query_builder import snapshot_query
from adapter.rules.rule import Rule
from tests.backends.moto_server import REGION, MotoServer

_RULES = 500
_NAMESPACE = "Bench"
_DEADLINE = timedelta(seconds=60)
_AT_ONCE = 10
_BEAT = 0.002


@dataclass(frozen=True)
class Cost:
    """What one interval took."""

    calls: float
    processor: float
    longest_pause: float


class Pauses:
    """Feels for how long the loop answers nobody, in processor time: a busy machine is no fault of ours."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def feel(self) -> None:
        """Come back every now and then, and note how much was done meanwhile."""
        while True:
            before = time.thread_time()
            await asyncio.sleep(_BEAT)
            self.longest = max(self.longest, time.thread_time() - before)


class Rig:
    """A server with a metric for each rule, and a user who may read them."""

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

    async def together(self, interval: float, intervals: int) -> Cost:
        """Keep 500 rules up to date for some intervals."""
        snapshots = Snapshots(Fetcher({"cw": CloudWatchBackend("cw", self.settings, clock)}, clock))
        every = timedelta(seconds=interval)
        asked = [
            snapshot_query(Rule(f"r{number}", backend="cw", parameters={"namespace": _NAMESPACE, "metric": f"m{number}"}))
            for number in range(_RULES)
        ]
        await asyncio.gather(*(snapshots.get(query, every, _DEADLINE) for query in asked))
        await asyncio.sleep(interval)  # the first beat may come at once

        async def some_intervals(number: int = intervals) -> None:
            await asyncio.sleep(interval * number)

        cost = await self._measured(some_intervals, intervals, lambda: some_intervals(1))
        for number, query in enumerate(asked):
            outcome = snapshots.peek(query)
            _expect([row.value for row in outcome.rows] if isinstance(outcome, Snapshot) else outcome, [number])
        await snapshots.aclose()
        await snapshots._fetcher.backends["cw"].aclose()  # noqa: SLF001 - ours, two lines above
        return cost

    async def one_by_one(self) -> Cost:
        """Ask for the same 500 with a call each, once."""
        client = AwsClient("cloudwatch", self.settings, clock)
        turn = asyncio.Semaphore(_AT_ONCE)

        async def ask(number: int) -> None:
            question = Question("", CloudWatchParameters(namespace=_NAMESPACE, metric=f"m{number}"))
            (asked,) = asked_now([question], clock())
            window = {"StartTime": asked.window.start, "EndTime": asked.window.end}
            async with turn:
                found = await client.request("", "get_metric_data", MetricDataQueries=list(queries(asked)), **window)
            _expect(found["MetricDataResults"][0]["Values"], [number])

        async def everything() -> None:
            await asyncio.gather(*(ask(number) for number in range(_RULES)))

        await ask(0)  # which opens the client
        cost = await self._measured(everything, 1, everything)
        await client.aclose()
        return cost

    async def _measured(
        self, work: Callable[[], Awaitable[None]], intervals: int, again: Callable[[], Awaitable[None]]
    ) -> Cost:
        """Measure what the work costs, and then once more with a finger on the loop, which itself costs something."""
        self.server.forget_calls()
        started = time.process_time()
        await work()
        cost = Cost(len(self.server.calls()) / intervals, (time.process_time() - started) / intervals, 0)
        pauses = Pauses()
        feeling = asyncio.create_task(pauses.feel())
        await again()
        feeling.cancel()
        return replace(cost, longest_pause=pauses.longest)


def _expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise RuntimeError(f"found {found}, and not {wanted}")


@contextmanager
def _rig() -> Iterator[Rig]:
    with tempfile.TemporaryDirectory() as folder:
        server = MotoServer(Path(folder) / "server")
        server.start()
        try:
            yield Rig(server, Path(folder))
        finally:
            server.stop()


async def run(interval: float, intervals: int) -> int:
    """Measure and print; return the exit code."""
    with _rig() as rig:
        alone = await rig.one_by_one()
        together = await rig.together(interval, intervals)
    print(
        f"{_RULES} CloudWatch rules, each asked once an interval; {intervals} intervals of {interval:g} s, against moto"
    )
    print(f"{'':<12}{'calls an interval':>20}{'our processor time':>22}{'longest pause':>18}")
    for name, cost in (("one by one", alone), ("together", together)):
        print(f"{name:<12}{cost.calls:>20.2f}{cost.processor * 1000:>19.0f} ms{cost.longest_pause * 1000:>15.0f} ms")
    share = together.processor / alone.processor
    print(
        f"together takes {share:.2f} of the processor time of one by one; calls a minute at an interval of 60 s: ",
        end="",
    )
    print(f"{together.calls:.2f}")
    return 0 if together.calls <= 2 else 1  # a count cannot be noisy; a time can, and is only shown


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interval", type=float, default=10.0, help="seconds (60 in a cluster)")
    parser.add_argument("--intervals", type=int, default=3, help="how many to measure")
    arguments = parser.parse_args()
    return asyncio.run(run(arguments.interval, arguments.intervals))


if __name__ == "__main__":
    sys.exit(main())
