"""Memory of an accepted response of Prometheus: the peak and what stays, for each MiB of the response.

A process serves a response of the given size; this process fetches it several times, as the refresh of a snapshot does,
so that the previous snapshot is in memory while the next response is read. Memory is the resident memory of this
process. Run with ``python -m bench.response_memory``.
"""

import argparse
import asyncio
import multiprocessing
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from aiohttp import web

from adapter.backends.prometheus.backend import PrometheusBackend
from adapter.backends.prometheus.settings import Prometheus
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.snapshot import Snapshot
from adapter.process import clock, tune_garbage_collector
from adapter.rules.query_builder import Query
from bench.process_stats import memory
from tests.prometheus.generated_responses import response

_MIB = 1024 * 1024
_DEADLINE = timedelta(minutes=5)


def _serve(series: int, ready: Connection) -> None:
    """Serve the response in a process of its own, so that its memory does not count."""
    body = response(series)

    async def run() -> None:
        async def respond(_request: web.Request) -> web.Response:
            return web.Response(body=body, content_type="application/json")

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", respond)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ready.send((runner.addresses[0][1], len(body)))
        await asyncio.Event().wait()

    asyncio.run(run())


def _peak() -> float:
    """Return the highest resident memory of this process since the last call, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5")
    return peak


async def _measure(port: int, size: float, fetches: int) -> None:
    backend = PrometheusBackend("prometheus", Prometheus(url=f"http://127.0.0.1:{port}"), clock)
    fetcher = Fetcher({"prometheus": backend}, clock)
    start = memory(multiprocessing.current_process().pid or 0)
    snapshot = None
    print(f"{'fetch':>5} {'peak MiB':>9} {'per MiB':>8} {'after MiB':>10} {'per MiB':>8}   response: {size:.1f} MiB")
    for number in range(1, fetches + 1):
        _peak()
        result = await fetcher.fetch(Query("prometheus", "http_requests_total"), _DEADLINE)
        if not isinstance(result, Snapshot):
            raise SystemExit(str(result.error))
        snapshot = result
        peak, after = _peak(), memory(multiprocessing.current_process().pid or 0)
        print(f"{number:>5} {peak:>9.0f} {(peak - start) / size:>8.1f} {after:>10.0f} {(after - start) / size:>8.1f}")
    print(f"{len(snapshot.series) if snapshot else 0} series; {start:.0f} MiB before the first fetch")
    await backend.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--series", type=int, default=75_000, help="series with 12 labels; 75000 are 52 MiB")
    parser.add_argument("--fetches", type=int, default=3)
    options = parser.parse_args()
    receiver, ready = multiprocessing.get_context("spawn").Pipe(duplex=False)
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(options.series, ready), daemon=True)
    server.start()
    port, size = receiver.recv()
    tune_garbage_collector()
    try:
        asyncio.run(_measure(port, size / _MIB, options.fetches))
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
