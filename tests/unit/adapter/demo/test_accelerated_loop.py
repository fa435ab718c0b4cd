"""The accelerated loop: waiting is accelerated, work is not."""

import asyncio
import time
from datetime import UTC, datetime

import pytest

from adapter.demo.accelerated_loop import AcceleratedLoop, DemoClock, start_of_day

START = datetime(2026, 1, 1, tzinfo=UTC)


def run(coroutine, speed=300):
    with asyncio.Runner(loop_factory=lambda: AcceleratedLoop(speed)) as runner:
        return runner.run(coroutine)


def test_sleeping_for_a_minute_takes_much_less_real_time():
    async def sleep():
        clock = DemoClock(START)
        await asyncio.sleep(60)
        return clock()

    started = time.monotonic()
    now = run(sleep())

    assert time.monotonic() - started < 30
    assert now >= datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def test_timers_fire_in_order():
    async def order():
        fired: list[int] = []
        loop = asyncio.get_running_loop()
        for seconds in (30, 10, 20):
            loop.call_later(seconds, fired.append, seconds)
        await asyncio.sleep(40)
        return fired

    assert run(order()) == [10, 20, 30]


def test_long_computation_does_not_cause_a_timeout():
    async def block():
        async with asyncio.timeout(30):
            await asyncio.sleep(0)
            await asyncio.to_thread(time.sleep, 0.01)
            time.sleep(0.3)  # noqa: ASYNC251 - blocking is what this test is about
            await asyncio.sleep(1)

    run(block())


def test_real_time_block_is_not_accelerated():
    async def wait():
        loop = asyncio.get_running_loop()
        assert isinstance(loop, AcceleratedLoop)
        clock = DemoClock(START)
        with loop.real_time():
            await asyncio.to_thread(time.sleep, 0.3)
        elapsed = clock.elapsed.total_seconds()
        await asyncio.sleep(60)
        return elapsed

    started = time.monotonic()
    elapsed = run(wait())

    assert 0.3 <= elapsed < 30
    assert time.monotonic() - started < 30


def test_timeout_expires():
    async def wait():
        async with asyncio.timeout(10):
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        run(wait())


def test_day_starts_at_eight():
    assert start_of_day(datetime(2026, 5, 6, 23, 59, 59, 5, tzinfo=UTC)) == datetime(2026, 5, 6, 8, tzinfo=UTC)
