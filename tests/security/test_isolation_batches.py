"""Tenants that share a backend that sends batches: invalid and slow queries of one tenant cost others no read."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import pytest

from adapter.backends.resilience.batching import Batch, Batcher
from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.backends.resilience.rate_limit import RateLimit
from adapter.backends.settings import CircuitBreakerSettings
from adapter.errors import BackendBusy, BackendError, BadQuery
from tests.fakes.backend import loop_clock

pytestmark = pytest.mark.looptime
DEADLINE = timedelta(seconds=5)


class BatchingBackend:
    """Sends batches as the backends do. It rejects a batch with an invalid query and never answers a slow query."""

    def __init__(self, min_interval: float) -> None:
        self.requests: Counter[str] = Counter()
        self.mixed_batches = 0
        self._protected = ProtectedCall(CircuitBreakerSettings(), loop_clock)
        self._rate_limit = RateLimit(max_concurrent=4, min_interval=timedelta(seconds=min_interval))
        self._batcher: Batcher[str, str] = Batcher(self._request, key=str, max_queries=100)

    async def fetch(self, namespace: str, query: str) -> str:
        return await self._batcher.query(query, DEADLINE, namespace)

    async def aclose(self) -> None:
        await self._batcher.aclose()
        await self._protected.aclose()

    async def _request(self, batch: Batch[str]) -> Sequence[str | BackendError]:
        async with self._rate_limit.slot(batch.namespace):
            return await self._protected.run(
                repr(batch.queries),
                batch.time_left(),
                lambda: self._send(batch),
                namespace=batch.namespace,
                is_quarantined=batch.is_quarantined,
            )

    async def _send(self, batch: Batch[str]) -> Sequence[str | BackendError]:
        self.requests[batch.namespace] += 1
        self.mixed_batches += len({query.split()[0] for query in batch.queries}) > 1
        if any("slow" in query for query in batch.queries):
            await asyncio.sleep(1e6)
        await asyncio.sleep(0.1)
        if any("busy" in query for query in batch.queries):
            raise BackendBusy("HTTP 429")
        if any("invalid" in query for query in batch.queries):
            raise BadQuery("invalid query")
        return list(batch.queries)


@pytest.mark.parametrize("kind", ["invalid", "slow", "busy"])
async def test_namespace_with_valid_queries_loses_no_read_to_a_hostile_tenant(kind: str):
    backend = BatchingBackend(min_interval=0.05)
    failures: dict[str, Counter[str]] = {name: Counter() for name in ("bad", "good", "")}

    async def read(namespace: str, query: str, interval: float) -> None:
        while True:
            try:
                await backend.fetch(namespace, f"{namespace or 'operator'} {query}")
            except BackendError as error:
                failures[namespace][str(error)] += 1
            await asyncio.sleep(interval)

    tasks = [asyncio.create_task(read("bad", f"{kind} {number}", 5)) for number in range(200)]
    tasks += [asyncio.create_task(read(name, str(number), 7)) for name in ("good", "") for number in range(20)]
    await asyncio.sleep(60)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await backend.aclose()
    assert (failures["good"], failures[""]) == ({}, {})
    assert failures["bad"]
    assert backend.mixed_batches == 0
    assert min(backend.requests["good"], backend.requests[""]) >= 8
