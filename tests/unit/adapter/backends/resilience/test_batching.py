"""Gathering of queries into batches, in virtual time."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from adapter.backends.resilience.batching import Batch, Batcher
from adapter.errors import BackendError, BackendRejected, BackendTimeout, BackendUnreachable

pytestmark = pytest.mark.looptime
DEADLINE = timedelta(seconds=5)


class FakeSystem:
    """Doubles numbers in batches and records the time and size of each request."""

    def __init__(self, duration: float = 1.0, **options: object) -> None:
        self.duration = duration
        self.requests: list[tuple[float, int]] = []
        self.timeouts: list[timedelta] = []
        self.cancelled = 0
        self.error: BaseException | None = None
        self.batcher: Batcher[int, int] = Batcher(self.send, key=str, **{"max_queries": 500, **options})  # type: ignore[arg-type]

    async def send(self, batch: Batch[int]) -> Sequence[int | BackendError]:
        self.requests.append((round(asyncio.get_running_loop().time(), 3), len(batch.queries)))
        self.timeouts.append(batch.time_left())
        try:
            await asyncio.sleep(self.duration)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return [BackendRejected("negative") if number < 0 else number * 2 for number in batch.queries]

    async def query(self, number: int, deadline: timedelta = DEADLINE) -> int:
        return await self.batcher.query(number, deadline)


async def test_simultaneous_queries_are_one_request_and_each_gets_its_own_result():
    system = FakeSystem()
    results = await asyncio.gather(*(system.query(number) for number in range(500)))

    assert results == [number * 2 for number in range(500)]
    assert system.requests == [(0.0, 500)], "a full batch is sent immediately"
    assert not asyncio.all_tasks() - {asyncio.current_task()}


async def test_queries_within_the_linger_time_are_one_request():
    system = FakeSystem(linger=timedelta(milliseconds=100))

    async def query_later(seconds: float) -> int:
        await asyncio.sleep(seconds)
        return await system.query(1)

    await asyncio.gather(system.query(0), query_later(0.05), query_later(0.09), query_later(0.2))
    assert system.requests == [(0.1, 3), (0.3, 1)]


async def test_queries_beyond_the_maximum_are_further_requests():
    system = FakeSystem(max_queries=3)
    results = await asyncio.gather(*(system.query(number, timedelta(seconds=20)) for number in range(8)))

    assert results == [number * 2 for number in range(8)]
    assert [count for _, count in system.requests] == [3, 3, 2]


async def test_query_does_not_wait_for_a_request_of_another_group():
    async def send(batch: Batch[int]) -> Sequence[int]:
        await asyncio.sleep(3600 if batch.queries[0] % 2 else 0)
        return batch.queries

    batcher: Batcher[int, int] = Batcher(send, key=str, max_queries=10, group_key=lambda number: number % 2)
    results = await asyncio.gather(*(batcher.query(number, DEADLINE) for number in range(4)), return_exceptions=True)
    assert [results[0], results[2]] == [0, 2]
    assert [type(result) for result in results[1::2]] == [BackendTimeout, BackendTimeout]


async def test_error_of_one_query_does_not_fail_the_others():
    system = FakeSystem()
    valid, invalid = await asyncio.gather(system.query(1), system.query(-1), return_exceptions=True)

    assert valid == 2
    assert isinstance(invalid, BackendRejected)
    assert invalid.message == "negative"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(BackendUnreachable("gone", detail="x"), BackendUnreachable, id="backend error"),
        pytest.param(ZeroDivisionError("a bug"), ZeroDivisionError, id="unexpected exception"),
    ],
)
async def test_failed_request_fails_all_its_queries_each_with_its_own_exception(
    error: BaseException, expected: type[BaseException]
):
    system = FakeSystem()
    system.error = error
    results = await asyncio.gather(system.query(1), system.query(2), return_exceptions=True)

    assert [type(result) for result in results] == [expected, expected]
    if isinstance(results[0], BackendUnreachable):
        assert results[0] is not results[1]
        assert (results[0].message, results[0].detail) == ("gone", "x")


async def test_query_times_out_at_its_own_deadline_and_the_request_continues_for_the_others():
    system = FakeSystem(duration=3)
    loop = asyncio.get_running_loop()
    short = asyncio.create_task(system.query(1, timedelta(seconds=1)))
    long = asyncio.create_task(system.query(2, timedelta(seconds=10)))
    with pytest.raises(BackendTimeout, match="no response within 1s"):
        await short
    assert loop.time() < 1
    assert await long == 4
    assert system.timeouts[0] > timedelta(seconds=9)


async def test_request_that_takes_nearly_all_its_time_can_still_report_its_error():
    async def send(batch: Batch[int]) -> list[int]:
        await asyncio.sleep(batch.time_left().total_seconds() * 0.99)
        raise BackendTimeout("no response in 4.7s", detail="reason")

    batcher: Batcher[int, int] = Batcher(send, key=str, max_queries=10)
    with pytest.raises(BackendTimeout, match=r"^no response within 5s$") as caught:
        await batcher.query(1, DEADLINE)
    assert caught.value.detail == "reason"


async def test_request_is_cancelled_when_its_last_caller_is_cancelled():
    system = FakeSystem(duration=3)
    callers = [asyncio.create_task(system.query(number)) for number in range(3)]
    await asyncio.sleep(1)
    callers[0].cancel()
    await asyncio.sleep(0.1)
    assert system.cancelled == 0
    callers[1].cancel()
    callers[2].cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    await asyncio.sleep(0.1)
    assert system.cancelled == 1
    assert await system.query(4) == 8


async def test_query_that_is_cancelled_before_the_request_is_not_sent():
    system = FakeSystem(linger=timedelta(seconds=1))
    cancelled = asyncio.create_task(system.query(1))
    other = asyncio.create_task(system.query(2))
    await asyncio.sleep(0.5)
    cancelled.cancel()
    assert await other == 4
    assert [count for _, count in system.requests] == [1]


async def test_response_with_a_wrong_number_of_results_fails_all_queries():
    async def send(batch: Batch[int]) -> Sequence[int]:
        return batch.queries[1:]

    batcher: Batcher[int, int] = Batcher(send, key=str, max_queries=10)
    results = await asyncio.gather(*(batcher.query(number, DEADLINE) for number in range(2)), return_exceptions=True)
    assert [str(result) for result in results] == ["the response does not contain a result for each query"] * 2


async def test_closing_cancels_requests_and_fails_pending_queries():
    system = FakeSystem(duration=30, max_queries=2, linger=timedelta(seconds=60))
    callers = [asyncio.create_task(system.query(number)) for number in range(2)]  # a full batch: sent
    await asyncio.sleep(0.5)
    callers.append(asyncio.create_task(system.query(2)))  # pending
    await asyncio.sleep(0.5)
    await system.batcher.aclose()
    results = await asyncio.gather(*callers, return_exceptions=True)

    assert [type(result) for result in results] == [BackendUnreachable] * 3
    assert (system.cancelled, system.requests) == (1, [(0.0, 2)])
    with pytest.raises(BackendUnreachable, match="removed from the configuration"):
        await system.query(1)
    assert not asyncio.all_tasks() - {asyncio.current_task()}
