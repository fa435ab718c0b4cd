"""Slow queries in batches, in virtual time: the other queries are answered again after at most four intervals."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta

import pytest

from adapter.backends.resilience.batching import Batch, Batcher
from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.backends.settings import CircuitBreakerSettings
from adapter.errors import BackendError, BadQuery
from tests.fakes.backend import loop_clock

pytestmark = pytest.mark.looptime
DEADLINE = timedelta(seconds=5)
INTERVAL = 15.0
TIMED_OUT = "no response within 5s"
QUERIES = range(100)
INTERVALS_UNTIL_ANSWERED = 4
"""Two in which the batch times out, and two for a hundred queries that are sent alone, 0.2 seconds each."""

INTERVALS_UNTIL_RECOVERY = 6
"""After an outage of the whole system: a minute of backoff, then two intervals for a hundred queries."""


class FakeSystem:
    """Doubles numbers in batches; a batch takes as long as its slowest query."""

    def __init__(self, *slow: int, invalid: Collection[int] = ()) -> None:
        self.durations = dict.fromkeys(slow, 3600.0)
        self.default_duration = 0.2
        self.invalid = set(invalid)
        self.batches: list[list[int]] = []
        self.running = self.max_running_alone = 0
        self.batcher: Batcher[int, int] = Batcher(self.request, key=str, max_queries=500)

    async def request(self, batch: Batch[int]) -> Sequence[int | BackendError]:
        self.batches.append(list(batch.queries))
        self.running += batch.is_quarantined
        self.max_running_alone = max(self.max_running_alone, self.running)
        try:
            if self.invalid & set(batch.queries):
                raise BadQuery("one of them")
            await asyncio.sleep(max(self.durations.get(number, self.default_duration) for number in batch.queries))
        finally:
            self.running -= batch.is_quarantined
        return [number * 2 for number in batch.queries]

    async def query(self, number: int, deadline: timedelta = DEADLINE) -> int | str:
        try:
            return await self.batcher.query(number, deadline)
        except BackendError as error:
            return error.message

    async def interval(self, queries: Iterable[int] = QUERIES) -> dict[int, int | str]:
        """Send all queries at once, and wait until the next interval."""
        self.batches.clear()
        loop, numbers = asyncio.get_running_loop(), list(queries)
        started = loop.time()
        results = await asyncio.gather(*(self.query(number) for number in numbers))
        await asyncio.sleep(started + INTERVAL - loop.time())
        return dict(zip(numbers, results, strict=True))

    async def intervals_until(self, expected_results: dict[int, int | str]) -> int:
        for count in range(1, 50):
            if await self.interval() == expected_results:
                return count
        pytest.fail("the expected results never occurred")

    def sizes(self) -> list[int]:
        return sorted(map(len, self.batches))


def expected(slow: Collection[int], invalid: Collection[int] = ()) -> dict[int, int | str]:
    errors = {**dict.fromkeys(slow, TIMED_OUT), **dict.fromkeys(invalid, "one of them")}
    return {number: errors.get(number, number * 2) for number in QUERIES}


@pytest.mark.parametrize("slow", [{0}, {37}, {99}, {3, 80}], ids=["first", "middle", "last", "two"])
async def test_slow_queries_fail_alone_after_four_intervals_and_the_others_return_to_the_batch(slow: set[int]):
    system = FakeSystem(*slow)
    for _ in range(2):
        assert set((await system.interval()).values()) == {TIMED_OUT}
    assert 2 + await system.intervals_until(expected(slow)) <= INTERVALS_UNTIL_ANSWERED
    for _ in range(20):
        assert await system.interval() == expected(slow)
        assert max(system.sizes()) == 100 - len(slow)


async def test_timeouts_that_are_not_consecutive_quarantine_no_query():
    system = FakeSystem(37)
    await system.interval()
    system.durations.clear()
    await system.interval()
    system.durations[37] = 3600
    await system.interval()
    await system.interval(range(1))
    assert len(system.batcher._quarantine) == 0


async def test_other_queries_do_not_wait_for_a_slow_query():
    system = FakeSystem(37)
    await system.intervals_until(expected({37}))
    loop = asyncio.get_running_loop()
    started, slow = loop.time(), asyncio.create_task(system.query(37))
    await asyncio.gather(*(system.query(number, timedelta(seconds=1)) for number in range(30)))
    assert loop.time() - started < 0.5
    assert await slow == TIMED_OUT


async def test_slow_query_is_retried_with_backoff():
    system = FakeSystem(37)
    await system.intervals_until(expected({37}))
    retries = 0
    for _ in range(20):
        await system.interval()
        retries += system.sizes() == [1, 99]
    assert 3 <= retries <= 6


async def test_query_that_becomes_fast_returns_to_the_batch():
    system = FakeSystem(37)
    await system.intervals_until(expected({37}))
    system.durations.clear()
    assert await system.intervals_until(expected(())) <= INTERVALS_UNTIL_RECOVERY
    await system.interval()
    assert system.sizes() == [100]


@pytest.mark.parametrize("intervals", [1, 3, 8, 40])
async def test_system_that_was_slow_as_a_whole_recovers(intervals: int):
    system = FakeSystem(*QUERIES)
    for _ in range(intervals):
        assert await system.interval() == expected(QUERIES)
    system.durations.clear()
    assert await system.intervals_until(expected(())) <= INTERVALS_UNTIL_RECOVERY
    await system.interval()
    assert system.sizes() == [100]


async def test_requests_to_a_system_that_is_slow_as_a_whole_are_bounded():
    system = FakeSystem(*QUERIES)
    for _ in range(40):
        await system.interval()
        assert len(system.batches) <= 6
    assert system.max_running_alone == 3


async def test_many_slow_queries_leave_the_others_unaffected():
    slow = set(range(0, 100, 12))
    system = FakeSystem(*slow)
    assert await system.intervals_until(expected(slow)) <= 12
    for _ in range(20):
        assert await system.interval() == expected(slow)


async def test_slow_and_invalid_query_in_one_batch_are_both_isolated():
    system = FakeSystem(60, invalid={38})
    assert await system.intervals_until(expected({60}, {38})) <= INTERVALS_UNTIL_ANSWERED + 1
    for _ in range(5):
        assert await system.interval() == expected({60}, {38})
        assert system.sizes() in ([1, 98], [1, 1, 98])


async def test_query_of_a_cancelled_caller_does_not_count_as_slow():
    system = FakeSystem()
    system.default_duration = 3.0
    for _ in range(2):
        callers = [asyncio.create_task(system.query(number)) for number in QUERIES]
        await asyncio.sleep(2)
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
    assert await system.interval() == expected(())
    assert system.sizes() == [100]


async def test_query_with_a_shorter_deadline_than_its_batch_does_not_count_as_slow():
    system = FakeSystem()
    system.default_duration = 3.0
    for _ in range(2):
        hasty, *others = await asyncio.gather(system.query(0, timedelta(seconds=1)), *map(system.query, range(1, 100)))
        assert hasty == "no response within 1s"
        assert others == [number * 2 for number in range(1, 100)]
    assert await system.interval() == expected(())
    assert system.sizes() == [100]


async def test_timeout_repeated_by_an_open_circuit_does_not_count_as_slow():
    system = FakeSystem(*QUERIES)
    minutes = timedelta(minutes=10)
    limits = CircuitBreakerSettings(failure_threshold=1, open_duration=minutes, max_open_duration=minutes)
    protected = ProtectedCall(limits, loop_clock)

    async def request(batch: Batch[int]) -> Sequence[int | BackendError]:
        return await protected.run(repr(batch.queries), batch.time_left(), lambda: system.request(batch))

    batcher: Batcher[int, int] = Batcher(request, key=str, max_queries=500)
    for _ in range(10):
        await asyncio.gather(*(batcher.query(number, DEADLINE) for number in QUERIES), return_exceptions=True)
    assert system.sizes() == [100]
    assert len(batcher._quarantine) == 0
