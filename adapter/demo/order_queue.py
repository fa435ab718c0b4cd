"""A queue of orders and the consumers that work through it, as fast as there are of them.

`step` is the whole model, and pure: chance is an argument. Each consumer has ten orders in hand at once and an order
takes ten seconds, so a consumer finishes one a second. What a consumer had in hand when it went away is waiting again,
as with any queue that wants to be told when a message is done.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from aiohttp import web

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.watch import Change, Listing, Watched, follow

AT_ONCE: Final = 10
"""How many orders a consumer has in hand."""

SECONDS_EACH: Final = 10.0
"""How long it takes over one, on average."""

_TICK: Final = 1.0


@dataclass(frozen=True, slots=True)
class Queue:
    """What lies in the queue: orders that wait, and orders in a consumer's hands that are not done yet."""

    waiting: int = 0
    in_hand: int = 0
    arrived: int = 0
    """How many ever came."""

    @property
    def messages(self) -> int:
        """All that are not done: what a broker counts, and what is scaled by."""
        return self.waiting + self.in_hand


def step(queue: Queue, *, consumers: int, rate: float, seconds: float, chance: Random) -> Queue:
    """Let some time pass: orders arrive, consumers take some and finish some."""
    arrived = _arrivals(rate * seconds, chance)
    is_done = 1 - math.exp(-seconds / SECONDS_EACH)
    held = min(queue.in_hand, consumers * AT_ONCE)
    unfinished = sum(chance.random() >= is_done for _ in range(held))
    waiting = queue.waiting + arrived + queue.in_hand - held
    taken = min(waiting, consumers * AT_ONCE - unfinished)
    return replace(queue, waiting=waiting - taken, in_hand=unfinished + taken, arrived=queue.arrived + arrived)


def _arrivals(expected: float, chance: Random) -> int:
    """Draw how many come when so many are expected: they do not know of each other, so it is Poisson's number."""
    if expected <= 0:
        return 0
    count, left, none = 0, chance.random(), math.exp(-expected)
    while left > none:
        left *= chance.random()
        count += 1
    return count


def exposition(queue: Queue, labels: str) -> str:
    """Write what an exporter shows of the queue."""
    return (
        "# HELP checkout_queue_messages Orders that are not done yet, waiting or in hand.\n"
        "# TYPE checkout_queue_messages gauge\n"
        f"checkout_queue_messages{{{labels}}} {queue.messages}\n"
        "# HELP checkout_orders_total Orders that ever came.\n"
        "# TYPE checkout_orders_total counter\n"
        f"checkout_orders_total{{{labels}}} {queue.arrived}\n"
    )


class Shop:
    """The queue while the demonstration runs; how many consumers there are it hears from the cluster."""

    def __init__(self, kube: KubeClient, consumers: Watched, rate: Callable[[], float], chance: Random) -> None:
        self.queue = Queue()
        self.consumers = 0
        self._kube = kube
        self._watched = consumers
        self._rate = rate
        self._chance = chance

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Work for the length of the block."""
        async with asyncio.TaskGroup() as tasks:
            parts = [tasks.create_task(part, name="shop") for part in (self._count_consumers(), self._work())]
            try:
                yield
            finally:
                for part in parts:
                    part.cancel()

    async def metrics(self, _: web.Request) -> web.Response:
        """Answer a scrape."""
        text = exposition(self.queue, 'namespace="shop",queue="checkout"')
        return web.Response(text=text, content_type="text/plain")

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            self.queue = step(
                self.queue, consumers=self.consumers, rate=self._rate(), seconds=_TICK, chance=self._chance
            )

    async def _count_consumers(self) -> None:
        async with aclosing(follow(self._kube, self._watched)) as all_news:
            async for news in all_news:
                match news:
                    case Listing(objects):
                        self.consumers = sum(map(_ready, objects))
                    case Change(_, changed):
                        self.consumers = _ready(changed)


def _ready(deployment: Json) -> int:
    return int((deployment.get("status") or {}).get("readyReplicas") or 0)
