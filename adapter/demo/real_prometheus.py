"""A real Prometheus for the demonstration, where one is installed: it scrapes the queue, and can be killed."""

import asyncio
import json
import shutil
import socket
from contextlib import nullcontext
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import aiohttp

from adapter.demo.accelerated_loop import PacedLoop
from adapter.demo.environment import METRIC

_LOOPBACK: Final = "127.0.0.1"
_PROGRAM: Final = "prometheus"
_PATIENCE: Final = 20.0


class NoPrometheus(Exception):
    """There is no Prometheus here, or it does not start."""


class RealPrometheus:
    """A process of its own; it lives in the world's time, so it scrapes several times a second."""

    def __init__(self, target: str, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: asyncio.subprocess.Process | None = None
        host, _, path = target.removeprefix("http://").partition("/")
        scrape = {
            "job_name": "shop",
            "scrape_interval": "200ms",
            "scrape_timeout": "200ms",
            "honor_labels": True,  # the queue says itself which namespace it belongs to
            "metrics_path": f"/{path}",
            "static_configs": [{"targets": [host]}],
        }
        (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [scrape]}))

    @property
    def url(self) -> str:
        """Where it answers, when it does."""
        return f"http://{_LOOPBACK}:{self._port}"

    async def come_up(self) -> None:
        """Start it, and wait until it has seen the queue, which takes it some seconds of its own."""
        program = shutil.which(_PROGRAM)
        if program is None:
            raise NoPrometheus("--prometheus: no program of that name is installed here; leave the option out")
        with (self._folder / "prometheus.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                program,
                f"--config.file={self._folder / 'prometheus.yml'}",
                # It loses its past with each failure: its clock is the world's, so to it old numbers would seem new.
                f"--storage.tsdb.path={mkdtemp(prefix='data-', dir=self._folder)}",
                f"--web.listen-address={_LOOPBACK}:{self._port}",
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us to hear; we end it in our own time
            )
        loop = asyncio.get_running_loop()
        with loop.unhurried() if isinstance(loop, PacedLoop) else nullcontext():
            await self._answers()

    async def go_down(self) -> None:
        """Kill it, as an outage would: without a goodbye."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    async def _answers(self) -> None:
        async with aiohttp.ClientSession() as session:
            for _ in range(round(_PATIENCE / 0.05)):
                try:
                    async with session.get(f"{self.url}/api/v1/query", params={"query": METRIC}) as answer:
                        if answer.status == 200 and (await answer.json())["data"]["result"]:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.05)
        raise NoPrometheus("--prometheus: it does not come up; see prometheus.log with --keep")


def free_port(wanted: int = 0) -> int:
    """Find a port of loopback that nobody listens on; OSError if `wanted` is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((_LOOPBACK, wanted))
        port: int = probe.getsockname()[1]
        return port
