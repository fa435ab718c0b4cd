"""The composition of the demo: cluster, order queue, metrics backend, service, and playback of the scenario.

All parts communicate over HTTP on loopback.
"""

import asyncio
import logging
import shutil
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, redirect_stderr
from pathlib import Path
from random import Random
from socket import socket
from tempfile import mkdtemp
from typing import TextIO

from adapter import log, process
from adapter.demo.accelerated_loop import AcceleratedLoop, DemoClock, start_of_day
from adapter.demo.environment import CONSUMERS, create_objects, create_user, service_config
from adapter.demo.fake_prometheus import FakePrometheus
from adapter.demo.instructions import LOG, commands_to_try, introduction
from adapter.demo.narrator import Narrator, table
from adapter.demo.order_queue import OrderQueue
from adapter.demo.real_prometheus import RealPrometheus, reserved_port
from adapter.demo.scenario import END, MetricsBackend, Playback
from adapter.demo.service import DemoService
from adapter.fakecluster.cluster import Cluster


def play(options: Namespace, listening: socket, out: TextIO) -> None:
    """Run the demo with the command-line options, serving metrics on the socket."""
    with _temporary_folder(keep=options.keep) as folder, _logging_to(folder / LOG):
        with asyncio.Runner(loop_factory=lambda: AcceleratedLoop(options.speed)) as runner:
            output = runner.run(_play(options, listening, folder, out))
        if output.error is not None:
            raise output.error
        if options.keep:
            out.write(f"Log, kubeconfig and configuration are in {folder}\n")


async def _play(options: Namespace, listening: socket, folder: Path, out: TextIO) -> "_Output":
    stop = process.stop_event()
    output = _Output(out, stop)
    write, clock, random = output.write, DemoClock(start_of_day(process.clock())), Random()  # noqa: S311 - simulation
    write(introduction(options.speed, END))
    narrator = Narrator(write, clock)
    playback = Playback(clock, narrator, random)
    async with Cluster.serving(clock) as cluster, cluster.client() as kube:
        await create_objects(kube, cluster.kinds)
        queue = OrderQueue(kube, CONSUMERS, lambda: playback.orders_per_second, random)
        async with _metrics_backend(queue, folder, is_real=options.prometheus) as backend:
            port = listening.getsockname()[1]
            config = service_config(port=port, backend=backend.url, speed=options.speed, is_fake=not options.prometheus)
            service = DemoService(folder, config, cluster=cluster.connection.server, token=create_user(cluster))
            async with (
                queue.running(),
                service.running(clock, narrator, listening),
                service.ready(kube, with_page=not options.no_page) as page,
            ):
                write(commands_to_try(service.url, page, folder))
                await playback.run(queue, backend, stop, once=options.once)
    write(f"\nSummary:\n\n{table(narrator.day)}\n")
    return output


class _Output:
    """Standard output of the demo. An error stops the demo: most writes are in tasks that must not end with it."""

    def __init__(self, out: TextIO, stop: asyncio.Event) -> None:
        self.error: OSError | None = None
        """The first error, such as BrokenPipeError in ``steadyscale demo | head``."""

        self._out = out
        self._stop = stop

    def write(self, text: str) -> None:
        if self.error is not None:
            return
        try:
            self._out.write(text)
            self._out.flush()  # for a reader behind a pipe
        except OSError as error:
            self.error = error
            self._stop.set()


@asynccontextmanager
async def _metrics_backend(queue: OrderQueue, folder: Path, *, is_real: bool) -> AsyncIterator[MetricsBackend]:
    async with AsyncExitStack() as stack:
        backend: MetricsBackend = FakePrometheus(lambda: queue.state.metrics)
        if is_real:
            target = await stack.enter_async_context(queue.exporter())
            backend = RealPrometheus(target, folder, stack.enter_context(reserved_port()))
        stack.push_async_callback(backend.stop)
        await backend.start()
        yield backend


@contextmanager
def _temporary_folder(*, keep: bool) -> Iterator[Path]:
    """Create a folder that only this user can read, for the length of the block."""
    folder = Path(mkdtemp(prefix="steadyscale-demo-"))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder)


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Redirect the log to a file while the block runs: standard output is for the narration."""
    with path.open("w", encoding="utf-8", buffering=1) as file, redirect_stderr(file):
        log.configure("text", "info")
        logging.getLogger("aiohttp.access").setLevel(logging.WARNING)  # only the service's own access log
        try:
            yield
        finally:
            logging.basicConfig(handlers=[logging.NullHandler()], force=True)
