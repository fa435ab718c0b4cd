"""Time that runs fast: waiting is short, and a stall makes nobody late."""

import asyncio
import time
from datetime import UTC, datetime

import pytest

from adapter.demo.accelerated_loop import DemoClock, PacedLoop, morning


def in_paced(speed, coroutine):
    with asyncio.Runner(loop_factory=lambda: PacedLoop(speed)) as runner:
        return runner.run(coroutine)


def test_a_minute_is_over_in_less_than_a_few_seconds():
    async def wait():
        clock = DemoClock(datetime(2026, 1, 1, tzinfo=UTC))
        await asyncio.sleep(60)
        return clock()

    began = time.monotonic()
    told = in_paced(300, wait())

    assert time.monotonic() - began < 30
    assert told >= datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def test_timers_are_due_in_their_order():
    async def order():
        found = []
        loop = asyncio.get_running_loop()
        for seconds in (30, 10, 20):
            loop.call_later(seconds, found.append, seconds)
        await asyncio.sleep(40)
        return found

    assert in_paced(300, order()) == [10, 20, 30]


def test_who_computes_for_long_makes_no_deadline_pass():
    async def stall():
        async with asyncio.timeout(30):
            await asyncio.sleep(0)
            await asyncio.to_thread(time.sleep, 0.01)
            time.sleep(0.3)  # noqa: ASYNC251 - a stall is what this is about
            await asyncio.sleep(1)

    in_paced(300, stall())


def test_nobody_hurries_while_a_process_of_the_world_is_waited_for():
    async def wait():
        loop = asyncio.get_running_loop()
        assert isinstance(loop, PacedLoop)
        clock = DemoClock(datetime(2026, 1, 1, tzinfo=UTC))
        with loop.unhurried():
            await asyncio.to_thread(time.sleep, 0.3)
        unhurried = clock.elapsed.total_seconds()
        await asyncio.sleep(60)
        return unhurried

    began = time.monotonic()
    unhurried = in_paced(300, wait())

    assert 0.3 <= unhurried < 30
    assert time.monotonic() - began < 30


def test_a_deadline_that_is_missed_still_passes():
    async def wait():
        async with asyncio.timeout(10):
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        in_paced(300, wait())


def test_the_day_begins_at_eight():
    assert morning(datetime(2026, 5, 6, 23, 59, 59, 5, tzinfo=UTC)) == datetime(2026, 5, 6, 8, tzinfo=UTC)
