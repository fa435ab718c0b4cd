"""Concurrency and interval of requests, in virtual time."""

import asyncio
from datetime import timedelta

import pytest

from adapter.backends.resilience.rate_limit import RateLimit

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
