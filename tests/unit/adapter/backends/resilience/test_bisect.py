"""Invalid queries in batches: found by splitting, then sent alone."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.backends.resilience.batching import Batch, Batcher
from adapter.errors import BackendError, BackendRejected, BadQuery

TIMEOUT = timedelta(seconds=5)


def batcher(
    request: Callable[[Batch[int]], Awaitable[Sequence[int | BackendError]]], **options: Any
) -> Batcher[int, int]:
    return Batcher(request, key=str, max_queries=500, linger=timedelta(), **options)


async def send(batcher: Batcher[int, int], queries: Iterable[int]) -> list[int | BaseException]:
    return await asyncio.gather(*(batcher.query(number, TIMEOUT) for number in queries), return_exceptions=True)


class FakeSystem:
    """Doubles numbers in batches; rejects a batch that contains an invalid number."""

    def __init__(self, *invalid: int, groups: int = 1) -> None:
        self.invalid = set(invalid)
        self.requests: list[list[int]] = []
        self.error: BackendError | None = None
        self.batcher: Batcher[int, int] = batcher(self.request, group_key=lambda number: number % groups)

    async def request(self, batch: Batch[int]) -> Sequence[int | BackendError]:
        self.requests.append(list(batch.queries))
        await asyncio.sleep(0)
        assert batch.time_left() > timedelta()
        if self.error is not None:
            raise self.error
        if self.invalid & set(batch.queries):
            raise BadQuery("one of them")
        return [number * 2 for number in batch.queries]

    async def send(self, queries: Sequence[int]) -> list[int | str]:
        self.requests.clear()
        results = await send(self.batcher, queries)
        return [type(result).__name__ if isinstance(result, BaseException) else result for result in results]


def expected(queries: Sequence[int], invalid: set[int]) -> list[int | str]:
    return ["BadQuery" if number in invalid else number * 2 for number in queries]


@settings(deadline=None)
@given(
    queries=st.lists(st.integers(0, 60), max_size=40, unique=True),
    invalid=st.sets(st.integers(0, 60), max_size=6),
    groups=st.integers(1, 4),
)
def test_valid_queries_are_answered_at_once_and_invalid_ones_are_sent_alone_from_then_on(
    queries: list[int], invalid: set[int], groups: int
) -> None:
    async def run() -> None:
        system = FakeSystem(*invalid, groups=groups)
        assert await system.send(queries) == expected(queries, invalid)
        found = invalid & set(queries)
        bound = groups + len(found) * 2 * (math.ceil(math.log2(max(len(queries), 2))) + 1)
        assert len(system.requests) <= bound
        assert await system.send(queries) == expected(queries, invalid)
        assert len(system.requests) <= groups + len(found), "one request for each invalid query and none for a search"

    asyncio.run(run())


async def test_positions_named_by_the_error_replace_the_search():
    sizes = []

    async def request(batch: Batch[int]) -> Sequence[int | BackendError]:
        sizes.append(len(batch.queries))
        if invalid := [position for position, number in enumerate(batch.queries) if number in {3, 30}]:
            raise BadQuery("invalid", detail=str(invalid[0]))
        return [number * 2 for number in batch.queries]

    results = await send(batcher(request, rejected_positions=lambda error: {int(error.detail)}), range(40))
    assert [position for position, result in enumerate(results) if isinstance(result, BadQuery)] == [3, 30]
    assert all(result == position * 2 for position, result in enumerate(results) if position not in {3, 30})
    assert sorted(sizes) == [1, 1, 38, 39, 40]


async def test_query_that_becomes_valid_returns_to_the_batch():
    system = FakeSystem(3)
    await system.send(range(8))
    system.invalid.clear()
    assert await system.send(range(8)) == expected(range(8), set())
    assert sorted(map(len, system.requests)) == [1, 7]
    await system.send(range(8))
    assert system.requests == [list(range(8))]


async def test_error_that_concerns_no_single_query_fails_the_batch_without_a_search():
    system = FakeSystem()
    system.error = BackendRejected("rate limit exceeded")
    assert await system.send(range(8)) == ["BackendRejected"] * 8
    assert len(system.requests) == 1
