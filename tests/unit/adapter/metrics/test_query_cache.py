import asyncio
from datetime import timedelta

import pytest

from adapter import errors
from adapter.metrics.fetcher import Failed, Fetcher
from adapter.metrics.query_cache import QueryCache
from adapter.rules.query_builder import Query
from tests.fakes.backend import ScriptedBackend, loop_clock, raw

pytestmark = pytest.mark.looptime

QUERY = Query("b", "q")
INTERVAL, DEADLINE = timedelta(seconds=10), timedelta(seconds=5)


def cache(backend: ScriptedBackend, size: int = 100) -> QueryCache:
    return QueryCache(Fetcher({"b": backend}, loop_clock), size)


async def test_the_same_query_is_asked_once_at_a_time_and_once_an_interval():
    backend = ScriptedBackend(rows={"q": (raw(1),)}, takes=1)
    answers = cache(backend)
    await asyncio.gather(*(answers.get(QUERY, INTERVAL, DEADLINE) for _ in range(50)))
    assert backend.asked["q"] == 1

    await asyncio.sleep(9)
    await answers.get(QUERY, INTERVAL, DEADLINE)
    assert backend.asked["q"] == 1

    await asyncio.sleep(2)
    await answers.get(QUERY, INTERVAL, DEADLINE)
    assert backend.asked["q"] == 2


async def test_it_is_counted_whether_an_answer_was_at_hand():
    answers, seen = cache(ScriptedBackend(rows={"q": (raw(1),)})), []
    answers.watch = seen.append
    for _ in range(3):
        await answers.get(QUERY, INTERVAL, DEADLINE)
    assert seen == [False, True, True]


async def test_nothing_is_fetched_that_nobody_asks_for():
    backend = ScriptedBackend(rows={"q": (raw(1),)})
    await cache(backend).get(QUERY, INTERVAL, DEADLINE)
    await asyncio.sleep(1000)

    assert backend.asked["q"] == 1


async def test_a_failure_is_believed_for_a_second():
    backend = ScriptedBackend(rows={"q": errors.BackendRejected("no")})
    answers = cache(backend)
    assert isinstance(await answers.get(QUERY, INTERVAL, DEADLINE), Failed)
    assert isinstance(answers.peek(QUERY), Failed)

    backend.rows["q"] = (raw(1),)
    await asyncio.sleep(0.5)
    assert isinstance(await answers.get(QUERY, INTERVAL, DEADLINE), Failed)
    await asyncio.sleep(0.6)
    assert not isinstance(await answers.get(QUERY, INTERVAL, DEADLINE), Failed)


async def test_made_up_selectors_cannot_fill_the_memory():
    answers = cache(ScriptedBackend(), size=10)
    for number in range(1000):
        await answers.get(Query("b", str(number)), INTERVAL, DEADLINE)

    assert sum(answers.peek(Query("b", str(number))) is not None for number in range(1000)) == 10


async def test_closing_ends_what_is_under_way():
    answers = cache(ScriptedBackend(takes=100))
    asking = asyncio.create_task(answers.get(QUERY, INTERVAL, timedelta(seconds=200)))
    await asyncio.sleep(1)
    await answers.aclose()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_query_longer_than_people_write_is_answered_and_not_remembered():
    long = Query("b", "q" * 10_000)
    backend = ScriptedBackend(rows={long.text: (raw(1),)})
    answers = cache(backend)
    for _ in range(2):
        assert not isinstance(await answers.get(long, INTERVAL, DEADLINE), Failed)

    assert (backend.asked[long.text], answers.peek(long)) == (2, None)
