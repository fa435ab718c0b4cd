"""Cost of refreshing a snapshot: CPU time, longest pause of the event loop, and memory per series.

A process of its own serves responses as Prometheus sends them: by default 10,000 series with 12 labels and the
timestamps of their samples, of which 5 % have another value each time. Before each refresh some series are read by
selectors, and a subscriber is notified of the changed series, as in the service. The reference is ``json.loads`` of
the same response. Run with ``python -m bench.snapshots``.
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import time
import tracemalloc
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection

import msgspec
from aiohttp import web

from adapter.backends.prometheus.backend import PrometheusBackend
from adapter.backends.prometheus.settings import Prometheus
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.in_process import InProcessMetrics
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.process import clock, tune_garbage_collector
from adapter.rules.rule import Rule
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.values.selector import parse
from tests.prometheus.generated_responses import response

_BODIES = 4
_CHANGED_SHARE = 20
_READS = 100
_MAX_PAUSE = 0.020


def changing_responses(series: int) -> list[bytes]:
    """Return responses with the same series; each twentieth series has another value than in the one before."""
    document = msgspec.json.decode(response(series))
    rows = document["data"]["result"]
    values, timestamps = rows[::2], rows[1::2]
    document["data"]["result"] = [*values, *timestamps]  # the order of Prometheus: ``or`` appends the right side
    bodies = []
    for number in range(_BODIES):
        for row in values[number % _CHANGED_SHARE :: _CHANGED_SHARE]:
            row["value"][1] = str(float(row["value"][1]) + 1)
        bodies.append(msgspec.json.encode(document))
    return bodies


def _serve(series: int, ready: Connection) -> None:
    """Serve the responses in turn, in a process of its own, so that its CPU time and memory do not count."""
    bodies = changing_responses(series)

    async def run() -> None:
        served = 0

        async def respond(_request: web.Request) -> web.Response:
            nonlocal served
            served += 1
            return web.Response(body=bodies[served % _BODIES], content_type="application/json")

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", respond)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ready.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


@dataclass
class Pause:
    """The longest time between two turns of the event loop, and the CPU time of this process within it, in seconds."""

    elapsed: float = 0.0
    cpu: float = 0.0

    async def watch(self) -> None:
        while True:
            started, cpu = time.perf_counter(), time.process_time()
            await asyncio.sleep(0.001)
            self.elapsed = max(self.elapsed, time.perf_counter() - started - 0.001)
            self.cpu = max(self.cpu, time.process_time() - cpu)


class Rig:
    """A reader of one rule whose snapshot is refreshed at a short interval."""

    def __init__(self, port: int, series: int, interval: float) -> None:
        period, deadline = timedelta(seconds=interval), timedelta(seconds=60)
        rule = Rule("requests", backend="prometheus", query="requests_total", interval=period, deadline=deadline)
        backend = PrometheusBackend("prometheus", Prometheus(url=f"http://127.0.0.1:{port}"), clock)
        self.fetcher = Fetcher({"prometheus": backend}, clock)
        self.reader = MetricReader(RuleRegistry([rule]), Sources(self.fetcher), clock)
        self.notifications = 0
        InProcessMetrics(self.reader).subscribe(self._on_change)
        step = max(series // _READS, 1)
        self._reads = [
            (f"team-{number % 50}", f"payment-service-{number:x}-abcde") for number in range(0, series, step)
        ]

    def _on_change(self, _change: object) -> None:
        self.notifications += 1

    async def read(self) -> None:
        for namespace, pod in self._reads:
            await self.reader.read_samples(namespace, "requests", parse(f"pod={pod}"))

    async def refreshes(self, count: int) -> None:
        """Wait for this number of refreshes, and read after each."""
        for _ in range(count):
            sent = self.fetcher.query_count
            while self.fetcher.query_count == sent:  # noqa: ASYNC110 - the fetcher has no event to wait for
                await asyncio.sleep(0.02)
            await self.read()


async def _measure(port: int, options: argparse.Namespace, reference: float) -> None:
    rig = Rig(port, options.series, options.interval)
    gc.collect()
    tracemalloc.start()
    await rig.read()
    gc.collect()
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    await rig.refreshes(3)  # the third is like all later ones: the indexes that reads use are known
    started, sent = time.process_time(), rig.fetcher.query_count
    await rig.refreshes(options.refreshes)
    per_refresh = (time.process_time() - started) / (rig.fetcher.query_count - sent)
    pause = Pause()
    watching = asyncio.create_task(pause.watch())
    await rig.refreshes(options.refreshes)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    await rig.reader.sources.aclose()
    print(f"snapshot of {options.series} series with 12 labels, {rig.notifications} notifications")
    print(f"CPU time per refresh: {per_refresh * 1000:.1f} ms, {per_refresh / reference:.2f} of json.loads")
    print(f"reference, json.loads of the response: {reference * 1000:.1f} ms")
    elapsed, cpu = pause.elapsed * 1000, pause.cpu * 1000
    print(f"longest pause of the event loop: {elapsed:.1f} ms, CPU time within a pause {cpu:.1f} ms")
    print(f"pause below {_MAX_PAUSE * 1000:.0f} ms of CPU time: {'yes' if pause.cpu < _MAX_PAUSE else 'NO'}")
    print(f"memory per series after the first fetch: {memory / options.series:.0f} bytes")


def _reference(series: int) -> float:
    """Return the CPU seconds that ``json.loads`` needs for the response, the best of five."""
    body, seconds = changing_responses(series)[0], []
    for _ in range(5):
        started = time.process_time()
        json.loads(body)
        seconds.append(time.process_time() - started)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--refreshes", type=int, default=10)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between refreshes")
    options = parser.parse_args()
    receiver, ready = multiprocessing.get_context("spawn").Pipe(duplex=False)
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(options.series, ready), daemon=True)
    server.start()
    port = receiver.recv()
    reference = _reference(options.series)
    tune_garbage_collector()
    try:
        asyncio.run(_measure(port, options, reference))
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
