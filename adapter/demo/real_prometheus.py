"""A real Prometheus process for the demo, if one is installed."""

import asyncio
import json
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import aiohttp

from adapter.demo.accelerated_loop import AcceleratedLoop
from adapter.demo.environment import LOOPBACK, METRIC

_START_TIMEOUT: Final = 60.0
_POLL_INTERVAL: Final = 0.05


class PrometheusUnavailable(Exception):
    """Prometheus is not installed, or did not start."""


class RealPrometheus:
    """A Prometheus process. It runs in real time, not in the faster demo time, so it scrapes several times a second."""

    def __init__(self, target: str, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port
        self._process: asyncio.subprocess.Process | None = None
        host, _, path = target.removeprefix("http://").partition("/")
        scrape = {
            "job_name": "shop",
            "scrape_interval": "200ms",
            "scrape_timeout": "200ms",
            "honor_labels": True,  # keep the namespace label of the queue
            "metrics_path": f"/{path}",
            "static_configs": [{"targets": [host]}],
        }
        (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [scrape]}), encoding="utf-8")

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._port}"

    async def start(self) -> None:
        """Start the process, and wait until it has scraped the queue."""
        program = shutil.which("prometheus")
        if program is None:
            raise PrometheusUnavailable("--prometheus: no program `prometheus` in PATH; install it or omit the option")
        with (self._folder / "prometheus.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                program,
                f"--config.file={self._folder / 'prometheus.yml'}",
                # A new database after each outage: in real time, samples from before the outage would still be recent.
                f"--storage.tsdb.path={mkdtemp(prefix='data-', dir=self._folder)}",
                f"--web.listen-address={LOOPBACK}:{self._port}",
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C must not reach it; the demo stops it
            )
        loop = asyncio.get_running_loop()
        with loop.real_time() if isinstance(loop, AcceleratedLoop) else nullcontext():
            await self._wait_for_samples()

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    async def _wait_for_samples(self) -> None:
        async with aiohttp.ClientSession() as session:
            for _ in range(round(_START_TIMEOUT / _POLL_INTERVAL)):
                try:
                    async with session.get(f"{self.url}/api/v1/query", params={"query": METRIC}) as response:
                        if response.status == 200 and (await response.json())["data"]["result"]:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(_POLL_INTERVAL)
        message = f"--prometheus: Prometheus has no samples after {_START_TIMEOUT:g} s; see prometheus.log with --keep"
        raise PrometheusUnavailable(message)


@contextmanager
def reserved_port() -> Iterator[int]:
    """Reserve a port of loopback for a program that this process starts, also while that program is stopped.

    The kernel assigns the port of a bound socket to no other program. A program that requests it by number can listen
    on it, because with SO_REUSEADDR only listening sockets conflict.
    """
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((LOOPBACK, 0))
        yield bound.getsockname()[1]
