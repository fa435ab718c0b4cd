"""Calls begin no closer together, and are no more at once, than they may be; in virtual time."""

import asyncio
from datetime import timedelta

import pytest

from adapter.backends.resilience.rate_limit import Pace

pytestmark = pytest.mark.looptime


async def test_calls_begin_one_after_another() -> None:
    loop, pace, begun = asyncio.get_running_loop(), Pace(at_once=10, per_second=2), []

    async def call() -> None:
        async with pace.turn():
            begun.append(loop.time())

    await asyncio.gather(*(call() for _ in range(4)))
    assert begun == [0, 0.5, 1, 1.5]
    await asyncio.sleep(10)
    await call()
    assert begun[-1] == 11.5, "who comes late waits for nobody"


async def test_without_a_pace_all_begin_at_once() -> None:
    loop, pace, begun = asyncio.get_running_loop(), Pace.apart(timedelta(), at_once=10), []

    async def call() -> None:
        async with pace.turn():
            begun.append(loop.time())

    await asyncio.gather(*(call() for _ in range(4)))
    assert begun == [0] * 4


async def test_no_more_are_under_way_than_may_be() -> None:
    pace, now, most = Pace(at_once=2, per_second=1000), 0, 0

    async def call() -> None:
        nonlocal now, most
        async with pace.turn():
            now += 1
            most = max(most, now)
            await asyncio.sleep(1)
            now -= 1

    await asyncio.gather(*(call() for _ in range(6)))
    assert (now, most) == (0, 2)


async def test_who_fails_or_leaves_gives_the_place_back() -> None:
    pace = Pace(at_once=1, per_second=1000)
    with pytest.raises(ZeroDivisionError):
        async with pace.turn():
            raise ZeroDivisionError
    leaving = asyncio.create_task(pace.turn().__aenter__())
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    async with asyncio.timeout(5), pace.turn():
        pass
