"""The demonstration, put together: opens the cluster, the queue, the metrics backend and the service, plays the day.

All parts speak HTTP with each other, and the service is the one that `steadyscale serve` runs.
"""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import TextIO

from aiohttp import web

from adapter import app, log
from adapter.demo.accelerated_loop import DemoClock, PacedLoop, morning
from adapter.demo.environment import CONSUMERS, LOOPBACK, configuration, furnish, welcome
from adapter.demo.fake_prometheus import MetricsBackend
from adapter.demo.instructions import opening, where_to_look
from adapter.demo.narrator import Narrator, table
from adapter.demo.order_queue import Shop
from adapter.demo.playback import Backend, Director
from adapter.demo.real_prometheus import RealPrometheus
from adapter.demo.service import Service, Visit
from adapter.demo.story import ENDS
from adapter.fakecluster.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Wishes:
    """What whoever runs the demonstration asked for."""

    port: int
    speed: float
    once: bool = False
    page: bool = True
    prometheus: bool = False
    keep: bool = False


def play(wishes: Wishes, out: TextIO) -> None:
    """Play the day."""
    with _folder(keep=wishes.keep) as folder, _logging_to(folder / "steadyscale.log"):
        with asyncio.Runner(loop_factory=lambda: PacedLoop(wishes.speed)) as runner:
            runner.run(_Stage(wishes, folder, out).play())
        if wishes.keep:
            out.write(f"Everything that was written is still in {folder}\n")


@dataclass(frozen=True, slots=True)
class _Stage:
    """Where the day is played."""

    wishes: Wishes
    folder: Path
    out: TextIO

    async def play(self) -> None:
        """Open everything, play, close everything."""
        stop, clock = app.told_to_stop(), DemoClock(morning(app.clock()))
        self._say(opening(self.wishes.speed, ENDS))
        narrator = Narrator(self._say, clock)
        director = Director(clock, narrator, Random())  # noqa: S311 - orders, not secrets
        async with Cluster.serving(clock) as cluster, cluster.client() as kube:
            await furnish(kube, cluster.kinds)
            shop = Shop(kube, CONSUMERS, lambda: director.rate, Random())  # noqa: S311 - likewise
            async with _exporter(shop) as target, self._backend(target) as backend:
                service = self._service(cluster, backend)
                async with shop.working(), service.running(clock, narrator), service.visited(kube) as places:
                    self._say(where_to_look(places))
                    await director.direct(shop, backend, stop, once=self.wishes.once)
        self._say(f"\nWhat happened, and why:\n{table(narrator.day)}\n")

    def _service(self, cluster: Cluster, backend: Backend) -> Service:
        wishes = self.wishes
        config = configuration(port=wishes.port, backend=backend.url, speed=wishes.speed, is_own=not wishes.prometheus)
        visit = Visit(cluster.connection.server, welcome(cluster), with_page=wishes.page)
        return Service(self.folder, config, visit)

    @asynccontextmanager
    async def _backend(self, target: str) -> AsyncIterator[Backend]:
        """Run the metrics backend that was asked for, for the length of the block."""
        if self.wishes.prometheus:
            backend: Backend = RealPrometheus(target, self.folder)
        else:
            backend = MetricsBackend(target)
        try:
            await backend.come_up()
            yield backend
        finally:
            await backend.go_down()

    def _say(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()  # who reads it through a pipe is watching, too


@asynccontextmanager
async def _exporter(shop: Shop) -> AsyncIterator[str]:
    """Let the queue be scraped for the length of the block; yield where."""
    application = web.Application()
    application.router.add_get("/metrics", shop.metrics)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, 0).start()
        yield f"http://{LOOPBACK}:{runner.addresses[0][1]}/metrics"
    finally:
        await runner.cleanup()


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    """Give a folder that only this user can read, for the length of the block."""
    folder = Path(mkdtemp(prefix="steadyscale-demo-"))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder)


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Let the service's log go to a file: standard output is for the story."""
    with path.open("w", encoding="utf-8", buffering=1) as file, redirect_stderr(file):
        log.configure("text", "info")
        logging.getLogger("aiohttp.access").setLevel(logging.WARNING)  # the service has its own, the others need none
        try:
            yield
        finally:
            logging.basicConfig(handlers=[logging.NullHandler()], force=True)
