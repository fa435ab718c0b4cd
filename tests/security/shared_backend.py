"""A backend with few connections that several namespaces share, and reads of its metrics, in virtual time."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.backends.settings import CircuitBreakerSettings
from adapter.errors import BackendBusy, BackendError, BackendRejected, BackendUnreachable, BadQuery
from adapter.metrics.fetcher import Fetcher, FetchFailure
from adapter.metrics.query_cache import QueryCache
from adapter.metrics.snapshots import Snapshots
from adapter.rules.query_builder import Query
from adapter.sample import RawSample
from tests.fakes.backend import loop_clock, raw

ERRORS: dict[str, type[BackendError]] = {
    "HTTP 503": BackendUnreachable,
    "HTTP 429": BackendBusy,
    "garbage": BackendRejected,
    "invalid": BadQuery,
}


@dataclass
class Behaviour:
    """How the backend answers the queries of one namespace, and how they are read."""

    namespace: str
    queries: int
    latency: float
    error: str = ""
    interval: float = 15.0
    deadline: float = 5.0
    is_template: bool = False
    """Whether each read has another selector, and so another query."""

    is_operator: bool = False
    starts_after: float = 0.0


@dataclass
class SharedBackend:
    """Answers after the latency of the behaviour that the text of a query begins with."""

    max_connections: int = 4
    name: str = "shared"
    behaviours: dict[str, Behaviour] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._protected = ProtectedCall(CircuitBreakerSettings(), loop_clock)
        self._connections = asyncio.Semaphore(self.max_connections)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        behaviour = self.behaviours[query.text.partition(" ")[0]]

        async def operation() -> tuple[RawSample, ...]:
            async with self._connections:
                await asyncio.sleep(behaviour.latency)
            if behaviour.error:
                raise ERRORS[behaviour.error](behaviour.error)
            return (raw(1),)

        return await self._protected.run(query.text, deadline, operation, namespace=query.namespace)

    async def ping(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        await self._protected.aclose()


class Readers:
    """Reads all metrics of all behaviours periodically and counts the reads that fail, by namespace."""

    def __init__(self, behaviours: Iterable[Behaviour], max_connections: int = 4, seed: int = 1) -> None:
        self._behaviours = tuple(behaviours)
        self._random = random.Random(seed)  # noqa: S311 - repeatable
        backend = SharedBackend(max_connections, behaviours={each.namespace: each for each in self._behaviours})
        self.fetcher = Fetcher({"shared": backend}, loop_clock, max_connections=lambda _: max_connections)
        self._snapshots, self._cache = Snapshots(self.fetcher), QueryCache(self.fetcher)
        self.reads: Counter[str] = Counter()
        self.failures: dict[str, Counter[str]] = {each.namespace: Counter() for each in self._behaviours}

    async def run(self, seconds: float) -> None:
        tasks = [
            asyncio.create_task(self._read(behaviour, number))
            for behaviour in self._behaviours
            for number in range(behaviour.queries)
        ]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._snapshots.aclose()
        await self._cache.aclose()

    async def _read(self, behaviour: Behaviour, number: int) -> None:
        interval, deadline = timedelta(seconds=behaviour.interval), timedelta(seconds=behaviour.deadline)
        source = self._cache if behaviour.is_template else self._snapshots
        tenant = "" if behaviour.is_operator else behaviour.namespace
        round_ = 0
        await asyncio.sleep(behaviour.starts_after)
        while True:
            text = f"{behaviour.namespace} {number} {round_ if behaviour.is_template else ''}"
            result = await source.get(Query("shared", text, tenant=tenant), interval, deadline)
            self.reads[behaviour.namespace] += 1
            if isinstance(result, FetchFailure):
                self.failures[behaviour.namespace][str(result.error)] += 1
            round_ += 1
            await asyncio.sleep(behaviour.interval * self._random.uniform(0.5, 1.0))
