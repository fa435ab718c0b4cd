"""A simulated queue of orders. Its consumers are the ready replicas of a Deployment.

`simulate` is the whole model, and pure except for the random number generator that is passed in. A consumer works on
ten orders at a time, each of which takes ten seconds on average, so that it finishes one order per second. When a
consumer is removed, its unfinished orders return to the queue.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from aiohttp import web

from adapter import process
from adapter.demo.environment import LOOPBACK, METRIC
from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.watch import ListWatch, ObjectList, WatchEvent, list_and_watch

ORDERS_PER_CONSUMER: Final = 10
"""How many orders a consumer works on at a time."""

SECONDS_PER_ORDER: Final = 10.0
"""How long an order takes, on average."""

LABELS: Final = {"namespace": "shop", "queue": "checkout"}
_TICK: Final = 1.0


@dataclass(frozen=True, slots=True)
class QueueState:
    """The orders that are not finished."""

    waiting: int = 0
    in_progress: int = 0
    received: int = 0
    """All orders that ever arrived."""

    @property
    def messages(self) -> int:
        """The queue length as a message broker reports it, which is the metric of the autoscaler."""
        return self.waiting + self.in_progress

    @property
    def metrics(self) -> dict[str, int]:
        return {METRIC: self.messages, "checkout_orders_total": self.received}


def simulate(state: QueueState, *, consumers: int, rate: float, seconds: float, random: Random) -> QueueState:
    """Return the state after some time: orders arrive, consumers take some and finish some."""
    arrived = _poisson(rate * seconds, random)
    finish_probability = 1 - math.exp(-seconds / SECONDS_PER_ORDER)
    held = min(state.in_progress, consumers * ORDERS_PER_CONSUMER)
    unfinished = sum(random.random() >= finish_probability for _ in range(held))
    waiting = state.waiting + arrived + state.in_progress - held
    taken = min(waiting, consumers * ORDERS_PER_CONSUMER - unfinished)
    return replace(state, waiting=waiting - taken, in_progress=unfinished + taken, received=state.received + arrived)


def _poisson(expected: float, random: Random) -> int:
    """Draw a Poisson-distributed number (Knuth's algorithm)."""
    if expected <= 0:
        return 0
    count, product, limit = 0, random.random(), math.exp(-expected)
    while product > limit:
        product *= random.random()
        count += 1
    return count


def exposition(values: Mapping[str, int]) -> str:
    """Return metrics in Prometheus' text format."""
    labels = ",".join(f'{name}="{value}"' for name, value in LABELS.items())
    return "".join(f"{name}{{{labels}}} {value}\n" for name, value in values.items())


class OrderQueue:
    """The running queue. It watches the Deployment to learn the number of consumers."""

    def __init__(self, kube: KubeClient, consumers: ListWatch, rate: Callable[[], float], random: Random) -> None:
        self.state = QueueState()
        self.consumers = 0
        self._kube = kube
        self._source = consumers
        self._rate = rate
        self._random = random

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with process.running({"order queue": self._run, "consumers": self._watch_consumers}, self._kube.metrics):
            yield

    @asynccontextmanager
    async def exporter(self) -> AsyncIterator[str]:
        """Serve the metrics of the queue while the block runs; yield the URL."""
        application = web.Application()
        application.router.add_get("/metrics", self._metrics)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, LOOPBACK, 0).start()
            yield f"http://{LOOPBACK}:{runner.addresses[0][1]}/metrics"
        finally:
            await runner.cleanup()

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(text=exposition(self.state.metrics), content_type="text/plain")

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            self.state = simulate(
                self.state, consumers=self.consumers, rate=self._rate(), seconds=_TICK, random=self._random
            )

    async def _watch_consumers(self) -> None:
        async with aclosing(list_and_watch(self._kube, self._source)) as items:
            async for item in items:
                match item:
                    case ObjectList(objects):
                        self.consumers = sum(map(_ready_replicas, objects))
                    case WatchEvent(_, deployment):
                        self.consumers = _ready_replicas(deployment)


def _ready_replicas(deployment: Json) -> int:
    return int((deployment.get("status") or {}).get("readyReplicas") or 0)
