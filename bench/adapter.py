"""What the served API costs: a metric read over TLS through a front proxy, beside a bare handler with the same bytes.

Each server has a process of its own, the load comes from this one, over connections that are kept; rounds alternate, so
that a busy machine is as unfair to the one as to the other, and the best of each counts. Ours verifies the caller, asks
for leave (remembered), finds the rule, matches the selector, encodes, counts and logs. ``python -m bench.adapter``.
"""

import argparse
import asyncio
import multiprocessing
import os
import ssl
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from aiohttp import web

from adapter import log
from adapter.app import settle
from adapter.config.model import Limits
from tests.loopback import assemble

_PATH = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/my-metric?labelSelector=foo%3Dbar"
_REQUEST = (
    f"GET {_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\nUser-Agent: bench\r\n"
    "X-Remote-User: alice\r\nX-Remote-Group: system:serviceaccounts\r\nX-Remote-Uid: 1\r\n"
    "Audit-Id: 5f0c7c1e-3b53-4b7e-9d53-0e1f2a3b4c5d\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n"
).encode()
_BODY = (
    b'{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{},"items":['
    b'{"metricName":"my-metric","metricLabels":{"foo":"bar"},"timestamp":"2026-01-01T00:00:00Z","value":"1100m"}]}\n'
)
_WARM_UP = 0.5
_RATE, _P99 = 0.6, 2.0


@dataclass(frozen=True)
class Round:
    """What one server did under load: requests a second, latencies in milliseconds, processor microseconds for each."""

    rate: float
    p50: float
    p99: float
    cpu: float


# --- the two servers, each in its process ----------------------------------------------------------------------------


def serve(kind: str, folder: str, pipe: Connection) -> None:
    """Run one of the two until the other end hangs up."""
    with Path(os.devnull).open("w") as nowhere:
        sys.stderr = nowhere
        log.configure("json", "info")
        asyncio.run((_ours if kind == "ours" else _bare)(Path(folder), pipe))


async def _ours(folder: Path, pipe: Connection) -> None:
    settle()
    server, tls, _ = assemble(folder, Limits())
    async with server.serving("127.0.0.1", 0, tls.listener) as port:
        await _report_to(pipe, port)


async def _bare(folder: Path, pipe: Connection) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=_BODY, content_type="application/json")

    app = web.Application()
    app.router.add_get(_PATH.partition("?")[0], handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    _, tls, _ = assemble(folder, Limits())
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls.listener)
    await site.start()
    await _report_to(pipe, site.port)
    await runner.cleanup()


async def _report_to(pipe: Connection, port: int) -> None:
    """Say where we listen and what we hold; then the processor time used whenever asked, until told to stop."""
    pipe.send((port, _resident()))
    while await asyncio.to_thread(pipe.recv) != "stop":
        pipe.send(time.process_time())
    pipe.send(_resident())


def _resident() -> float:
    """Say how much memory this process holds, in MiB."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


# --- the load --------------------------------------------------------------------------------------------------------


class Caller(asyncio.Protocol):
    """One connection that asks again as soon as it is answered."""

    def __init__(self, took: list[float]) -> None:
        self._took = took
        self._held = b""
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the first time."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        """Ask again if that was the whole answer."""
        self._held += data
        head, found, body = self._held.partition(b"\r\n\r\n")
        if not found or len(body) < len(_BODY):
            return
        if b" 200 " not in head[:16] or len(body) != len(_BODY):
            raise SystemExit(f"not the answer that was expected: {self._held[:400]!r}")
        self._took.append(time.perf_counter() - self._sent)
        self._held = b""
        self._ask()

    def _ask(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(_REQUEST)

    def close(self) -> None:
        """Hang up."""
        self._transport.abort()


async def load(port: int, folder: Path, pipe: Connection, connections: int, seconds: float) -> Round:
    """Keep a server busy and say how it did."""
    context = ssl.create_default_context(cafile=str(folder / "serving-ca.crt"))
    context.load_cert_chain(folder / "fp.crt", folder / "fp.key")
    took: list[float] = []
    loop = asyncio.get_running_loop()
    callers = []
    for _ in range(connections):
        _, caller = await loop.create_connection(lambda: Caller(took), "127.0.0.1", port, ssl=context)
        callers.append(caller)
    await asyncio.sleep(_WARM_UP)
    used = await _used(pipe)
    took.clear()
    started = time.perf_counter()
    await asyncio.sleep(seconds)
    elapsed, done = time.perf_counter() - started, sorted(took)
    used = await _used(pipe) - used
    for caller in callers:
        caller.close()
    milli = [1000 * each for each in done]
    return Round(len(done) / elapsed, milli[len(milli) // 2], milli[int(len(milli) * 0.99)], used * 1e6 / len(done))


async def _used(pipe: Connection) -> float:
    pipe.send("how much")
    return float(await asyncio.to_thread(pipe.recv))


# --- the comparison --------------------------------------------------------------------------------------------------


def main() -> int:
    """Measure both, print the table, and say whether the goal is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument(
        "--enforce", action="store_true", help="fail if the goal is missed; only a quiet machine can tell"
    )
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    rounds: dict[str, list[Round]] = {"bare": [], "ours": []}
    rest: dict[str, float] = {}
    loaded: dict[str, float] = {}
    for _ in range(options.rounds):
        for kind, done in rounds.items():
            with tempfile.TemporaryDirectory() as folder:
                here, there = spawn.Pipe()
                process = spawn.Process(target=serve, args=(kind, folder, there), daemon=True)
                process.start()
                port, rest[kind] = here.recv()
                done.append(asyncio.run(load(port, Path(folder), here, options.connections, options.seconds)))
                here.send("stop")
                loaded[kind] = here.recv()
                process.join(10)
    met = _report(rounds, rest, loaded, options.connections)
    return 1 if options.enforce and not met else 0


def _best(done: list[Round]) -> Round:
    """Take the best of everything: what another process took from a round says nothing of the server."""
    least = (min(getattr(each, name) for each in done) for name in ("p50", "p99", "cpu"))
    return Round(max(each.rate for each in done), *least)


def _report(rounds: dict[str, list[Round]], rest: dict[str, float], loaded: dict[str, float], connections: int) -> bool:
    best = {kind: _best(done) for kind, done in rounds.items()}
    bare, ours = best["bare"], best["ours"]
    print(f"TLS, front proxy, {connections} connections kept, the best of {len(rounds['ours'])} rounds each")
    print(f"{'':<14}{'requests/s':>12}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}{'MiB at rest':>13}{'MiB after':>11}")
    for kind, says in (("bare", "bare handler"), ("ours", "steadyscale")):
        it = best[kind]
        print(
            f"{says:<14}{it.rate:>12.0f}{it.p50:>9.2f}{it.p99:>9.2f}{it.cpu:>9.0f}{rest[kind]:>13.1f}{loaded[kind]:>11.1f}"
        )
    rate, p99 = ours.rate / bare.rate, ours.p99 / bare.p99
    print(f"{'ratio':<14}{rate:>12.2f}{ours.p50 / bare.p50:>9.2f}{p99:>9.2f}{ours.cpu / bare.cpu:>9.2f}")
    met = rate >= _RATE and p99 <= _P99
    print(f"goal: rate at least {_RATE} of bare, p99 at most {_P99} of bare: {'met' if met else 'MISSED'}")
    return met


if __name__ == "__main__":
    sys.exit(main())
