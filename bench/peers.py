"""The request path beside prometheus-adapter, which is built from its Go module into a temporary folder.

    python -m bench.peers [--binary PATH] [--seconds 3] [--rounds 3]

One read of a metric over 8 connections, then 1,000 readers with a selector each, once in 15 s. Both systems ask the
same Prometheus; callers are authenticated as the API server does it, by the certificate of the front proxy. CPU times
and counts are what to compare; rates depend on the load generator, which shares the cores. ``bench.fleet`` and
``bench.latency`` compare the fleet and the latency with the built-in HPA controller.
"""

import argparse
import asyncio
import json
import os
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from bench.process_stats import cpu, memory
from tests.control_plane import programs
from tests.control_plane.cluster import LOOPBACK, ControlPlane, control_plane, free_port
from tests.control_plane.process import Program
from tests.integration.service import GROUP, apply_manifests, process
from tests.prometheus.server import Server, prometheus
from tests.prometheus.target import target

MODULE: Final = "sigs.k8s.io/prometheus-adapter@v0.12.0"
SERIES: Final = 1000
CONNECTIONS: Final = 8
PERIOD: Final = 15.0
_HEADERS: Final = {"X-Remote-User": "reader", "X-Remote-Group": "system:masters"}
_NOT_MEASURED: Final = "KEDA: not measured, this program does not build it"


@dataclass(frozen=True)
class Peer:
    """One adapter."""

    name: str
    program: Program
    port: int
    tls: ssl.SSLContext
    server: Server

    def url(self, reader: int) -> str:
        path = f"{GROUP}/namespaces/bench/many?labelSelector=queue%3Dq{reader % SERIES}"
        return f"https://{LOOPBACK}:{self.port}{path}"

    def usage(self) -> tuple[float, float, float]:
        """Return the CPU seconds of the adapter and of Prometheus, and the queries at Prometheus."""
        queries = self.server.own_metric("prometheus_http_requests_total", handler="/api/v1/query")
        return cpu(self.program.pid), cpu(self.server.program.pid), queries

    async def wait_until_served(self) -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self.tls), headers=_HEADERS) as session:
            async with asyncio.timeout(300):
                while not await self._is_served(session):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(1)

    async def _is_served(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(self.url(0)) as response:
                return response.status == 200 and bool((await response.json(content_type=None))["items"])
        except aiohttp.ClientError:
            return False


@dataclass(frozen=True)
class Row:
    """The costs of a number of reads."""

    reads: int
    seconds: float
    adapter_cpu: float
    prometheus_cpu: float
    queries: float
    latencies: list[float]

    def __str__(self) -> str:
        cuts = statistics.quantiles(self.latencies, n=100)
        per_read = [one / self.reads * 1e6 for one in (self.adapter_cpu, self.prometheus_cpu)]
        left = f"{self.reads / self.seconds:>9.0f}{per_read[0]:>12.0f}{per_read[1]:>12.0f}"
        return f"{left}{self.queries / self.reads:>10.3f}{cuts[49] * 1000:>9.1f}{cuts[98] * 1000:>9.1f}"


_HEAD: Final = f"{'reads/s':>29}{'adapter µs':>12}{'Prom. µs':>12}{'queries':>10}{'p50 ms':>9}{'p99 ms':>9}"


async def measure(peer: Peer, read: Callable[[aiohttp.ClientSession, list[float]], Awaitable[None]]) -> Row:
    """Return the costs of what ``read`` does."""
    connector, latencies = aiohttp.TCPConnector(ssl=peer.tls, limit=CONNECTIONS), list[float]()
    async with aiohttp.ClientSession(connector=connector, headers=_HEADERS) as session:
        before, started = await asyncio.to_thread(peer.usage), time.perf_counter()
        await read(session, latencies)
        seconds, after = time.perf_counter() - started, await asyncio.to_thread(peer.usage)
    adapter_cpu, prometheus_cpu, queries = (end - begin for begin, end in zip(before, after, strict=True))
    return Row(len(latencies), seconds, adapter_cpu, prometheus_cpu, queries, latencies)


async def one_metric(peer: Peer, seconds: float) -> Row:
    """Read one metric with one selector as often as possible."""

    async def read(session: aiohttp.ClientSession, latencies: list[float]) -> None:
        end = time.perf_counter() + seconds

        async def client() -> None:
            while time.perf_counter() < end:
                latencies.append(await _timed(session, peer.url(0)))

        await asyncio.gather(*(client() for _ in range(CONNECTIONS)))

    return await measure(peer, read)


async def many_readers(peer: Peer, readers: int) -> Row:
    """Read by every reader once, spread over a period."""

    async def read(session: aiohttp.ClientSession, latencies: list[float]) -> None:
        async def client(number: int) -> None:
            await asyncio.sleep(PERIOD * number / readers)
            latencies.append(await _timed(session, peer.url(number)))

        await asyncio.gather(*map(client, range(readers)))

    return await measure(peer, read)


async def _timed(session: aiohttp.ClientSession, url: str) -> float:
    started = time.perf_counter()
    async with session.get(url) as response:
        await response.read()
        response.raise_for_status()
    return time.perf_counter() - started


async def compare(peers: list[Peer], options: argparse.Namespace) -> None:
    """Print the tables; the systems take turns, and the round with the least CPU time of the adapter counts."""
    for peer in peers:
        await peer.wait_until_served()
    rows: dict[str, list[Row]] = {peer.name: [] for peer in peers}
    for _ in range(options.rounds):
        for peer in peers:
            rows[peer.name].append(await one_metric(peer, options.seconds))
    print(f"One read, {CONNECTIONS} connections, best of {options.rounds}; CPU and queries per read", _HEAD, sep="\n")
    for name, found in rows.items():
        print(f"{name:<20}{min(found, key=lambda row: row.adapter_cpu / row.reads)}")
    print(f"{options.readers} readers, each with a selector, once in {PERIOD:g} s", _HEAD, sep="\n")
    for peer in peers:
        print(f"{peer.name:<20}{await many_readers(peer, options.readers)}")
    print("memory: " + ", ".join(f"{peer.name} {memory(peer.program.pid):.0f} MiB" for peer in peers))


def build(folder: Path) -> Path:
    """Build prometheus-adapter; its module is copied, because the module cache is read-only."""
    found = subprocess.run(  # noqa: S603 - fixed arguments
        ["go", "mod", "download", "-json", MODULE],  # noqa: S607 - of the PATH
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    source, binary = folder / "source", folder / "prometheus-adapter"
    shutil.copytree(json.loads(found.stdout)["Dir"], source, copy_function=shutil.copyfile)
    for path in (source, *source.rglob("*/")):
        path.chmod(0o755)
    command = ["nice", "-n", "19", "go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(binary), "./cmd/adapter"]
    subprocess.run(command, check=True, cwd=source, env={**os.environ, "CGO_ENABLED": "0"})  # noqa: S603
    return binary


def prometheus_adapter(binary: Path, plane: ControlPlane, server: Server, tls: ssl.SSLContext) -> Peer:
    """Prepare prometheus-adapter with the cheapest rule there is."""
    rule = {
        "seriesQuery": "many",
        "resources": {"overrides": {"namespace": {"resource": "namespace"}}},
        "name": {"as": "many"},
        "metricsQuery": "<<.Series>>{<<.LabelMatchers>>}",
    }
    config, port = plane.folder / "prometheus-adapter.yaml", free_port()
    config.write_text(json.dumps({"externalRules": [rule]}))
    certificate, key = plane.authority.server(LOOPBACK).save(plane.folder, "prometheus-adapter")
    kubeconfig = plane.kubeconfig("admin")
    command: list[str | Path] = [
        binary,
        f"--config={config}",
        f"--prometheus-url={server.url}",
        "--metrics-relist-interval=1m",
        f"--secure-port={port}",
        f"--bind-address={LOOPBACK}",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        *(f"--{name}-kubeconfig={kubeconfig}" for name in ("lister", "authentication", "authorization")),
    ]
    program = Program(command, plane.folder / "prometheus-adapter.log", lambda: True)
    return Peer("prometheus-adapter", program, port, tls, server)


def steadyscale(plane: ControlPlane, server: Server, tls: ssl.SSLContext) -> Peer:
    port = free_port()
    apply_manifests(plane, port)
    metrics = {
        "backends": {"main": {"prometheus": {"url": server.url}}},
        "rules": [{"name": "many", "backend": "main", "query": "many"}],
    }
    return Peer("steadyscale", process(plane, port, metrics=metrics), port, tls, server)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, help="a prometheus-adapter that is already built")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--readers", type=int, default=1000)
    options = parser.parse_args()
    missing = [name for name in ("prometheus", *(() if options.binary else ("go",))) if shutil.which(name) is None]
    if missing:
        print(f"NOT MEASURED: not installed: {', '.join(missing)}")
        return 1
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        binary = options.binary or build(folder)
        live = stack.enter_context(target())
        live.text = "".join(f'many{{queue="q{number}",namespace="bench"}} {number}\n' for number in range(SERIES))
        server = stack.enter_context(prometheus(folder / "prometheus", target=live.address))
        plane = stack.enter_context(control_plane(folder, programs.require()))
        tls = ssl._create_unverified_context()  # noqa: S323, SLF001 - loopback addresses
        tls.load_cert_chain(plane.folder / "front-proxy.crt", plane.folder / "front-proxy.key")
        peers = [steadyscale(plane, server, tls), prometheus_adapter(binary, plane, server, tls)]
        for peer in peers:
            stack.callback(peer.program.stop)
            peer.program.start()
        asyncio.run(compare(peers, options))
        print(_NOT_MEASURED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
