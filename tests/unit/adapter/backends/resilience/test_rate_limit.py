"""Concurrency and interval of requests, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from adapter.backends.resilience.rate_limit import OPERATOR, RateLimit
from adapter.errors import OverBudget

pytestmark = pytest.mark.looptime


async def starts(limit: RateLimit, count: int) -> list[float]:
    started: list[float] = []

    async def request() -> None:
        async with limit.slot():
            started.append(asyncio.get_running_loop().time())

    await asyncio.gather(*(request() for _ in range(count)))
    return started


async def test_requests_start_at_the_minimum_interval() -> None:
    limit = RateLimit(max_concurrent=10, min_interval=timedelta(seconds=0.5))
    assert await starts(limit, 4) == [0, 0.5, 1, 1.5]
    await asyncio.sleep(10)
    assert await starts(limit, 1) == [11.5], "a request after a pause starts immediately"


async def test_requests_without_a_minimum_interval_start_immediately() -> None:
    assert await starts(RateLimit(max_concurrent=10), 4) == [0] * 4


async def test_concurrent_requests_do_not_exceed_the_maximum() -> None:
    limit, running, maximum = RateLimit(max_concurrent=2), 0, 0

    async def request() -> None:
        nonlocal running, maximum
        async with limit.slot():
            running += 1
            maximum = max(maximum, running)
            await asyncio.sleep(1)
            running -= 1

    await asyncio.gather(*(request() for _ in range(6)))
    assert (running, maximum) == (0, 2)


async def test_failed_or_cancelled_request_releases_its_slot() -> None:
    limit = RateLimit(max_concurrent=1)
    with pytest.raises(ZeroDivisionError):
        async with limit.slot():
            raise ZeroDivisionError
    cancelled = asyncio.create_task(limit.slot().__aenter__())
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    async with asyncio.timeout(5), limit.slot():
        pass


class Load:
    """Requests of several namespaces on one limit, with the times at which they started and ended."""

    def __init__(self, limit: RateLimit) -> None:
        self.limit = limit
        self.ended: dict[str, list[float]] = {}
        self.refused: dict[str, int] = {}
        self.running: dict[str, int] = {}
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, namespace: str, seconds: float, count: int = 1, max_concurrent: int | None = None) -> None:
        requests = (self._request(namespace, seconds, max_concurrent) for _ in range(count))
        self.tasks += [asyncio.create_task(request) for request in requests]

    async def _request(self, namespace: str, seconds: float, max_concurrent: int | None) -> None:
        try:
            async with self.limit.slot(namespace, max_concurrent):
                self.running[namespace] = self.running.get(namespace, 0) + 1
                try:
                    await asyncio.sleep(seconds)
                finally:
                    self.running[namespace] -= 1
        except OverBudget:
            self.refused[namespace] = self.refused.get(namespace, 0) + 1
        else:
            self.ended.setdefault(namespace, []).append(asyncio.get_running_loop().time())

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        assert not any(self.running.values())


class TestFairness:
    @pytest.fixture
    async def load(self) -> AsyncIterator[Load]:
        load = Load(RateLimit(max_concurrent=4))
        yield load
        await load.stop()

    async def test_slots_are_reserved_for_the_operator_and_for_other_namespaces(self, load: Load) -> None:
        load.start("b", 0.1)
        load.start(OPERATOR, 0.1)
        await asyncio.sleep(1)
        load.start("a", 1000, count=100)
        await asyncio.sleep(1)
        assert load.running["a"] == 2
        load.start("b", 0.1)
        load.start(OPERATOR, 0.1)
        await asyncio.sleep(0.2)
        assert load.ended == {"b": pytest.approx([0.1, 2.1]), OPERATOR: pytest.approx([0.1, 2.1])}

    async def test_namespace_uses_all_slots_while_no_other_sends_requests(self, load: Load) -> None:
        load.start("a", 0.1)
        load.start(OPERATOR, 0.1)
        await asyncio.sleep(1000)
        load.start("b", 1, count=100)
        await asyncio.sleep(0.5)
        assert load.running["b"] == 4

    async def test_namespace_can_have_a_lower_limit_of_its_own(self, load: Load) -> None:
        load.start("a", 1, count=2, max_concurrent=1)
        await asyncio.sleep(2.5)
        assert load.ended == {"a": [1, 2]}

    async def test_slow_request_is_ended_if_a_namespace_with_fast_requests_waits(self, load: Load) -> None:
        load.start("a", 1000, count=100)
        load.start("b", 1000, count=100)
        await asyncio.sleep(10)
        assert load.running == {"a": 2, "b": 2}
        load.start("c", 0.05, count=40)
        await asyncio.sleep(2.7)
        assert load.ended == {"c": pytest.approx([10.55 + 0.05 * number for number in range(40)], abs=0.01)}
        assert sum(load.refused.values()) <= 3

    async def test_no_request_is_ended_if_all_namespaces_are_equally_slow(self, load: Load) -> None:
        for _ in range(10):
            for namespace in "abcdef":
                load.start(namespace, 3, count=1)
            await asyncio.sleep(6.5)
        assert sum(map(len, load.ended.values())) >= 50
        assert sum(load.refused.values()) <= 6, "at first, while the namespaces are unknown"

    async def test_namespace_with_fewer_requests_in_progress_is_next(self) -> None:
        load = Load(RateLimit(max_concurrent=8))
        load.start("a", 0.5, count=50)
        load.start("b", 0.5, count=2)
        await asyncio.sleep(1.1)
        assert load.ended["b"] == [1, 1]
        await load.stop()

    async def test_starts_at_the_minimum_interval_alternate_between_namespaces(self) -> None:
        load = Load(RateLimit(max_concurrent=10, min_interval=timedelta(seconds=1)))
        load.start("a", 0.1, count=100)
        await asyncio.sleep(5.5)
        load.start("b", 0.1, count=3)
        await asyncio.sleep(3)
        assert len(load.ended["b"]) == 3
        await load.stop()

    async def test_number_of_waiting_requests_of_a_namespace_is_bounded(self, load: Load) -> None:
        load.start("a", 1000, count=1100)
        await asyncio.sleep(0.1)
        assert load.refused == {"a": 96}

    async def test_cancelled_requests_leave_nothing_behind(self, load: Load) -> None:
        for number in range(50):
            load.start(f"n{number % 7}", 0.3, count=3)
            await asyncio.sleep(0.01 * (number % 3))
            load.tasks[number].cancel()
        await load.stop()
        assert not load.limit._running
        assert not any(share.running or share.waiting for share in load.limit._shares.values())
        async with asyncio.timeout(1), load.limit.slot("x"):
            pass
