import asyncio
from datetime import timedelta

import pytest

from adapter import errors
from adapter.metrics.fetcher import Fetcher, FetchFailure
from adapter.metrics.query_cache import QueryCache
from adapter.rules.query_builder import Query
from tests.fakes.backend import ScriptedBackend, loop_clock, raw

pytestmark = pytest.mark.looptime

QUERY = Query("b", "q")
INTERVAL, DEADLINE = timedelta(seconds=10), timedelta(seconds=5)


def cache(backend: ScriptedBackend, size: int = 100) -> QueryCache:
    """Return a cache for this number of results with a short query and one series."""
    return QueryCache(Fetcher({"b": backend}, loop_clock), size * 1540)


async def test_query_is_sent_once_per_interval_for_all_readers():
    backend = ScriptedBackend(results={"q": (raw(1),)}, delay=1)
    results = cache(backend)
    await asyncio.gather(*(results.get(QUERY, INTERVAL, DEADLINE) for _ in range(50)))
    assert backend.fetches["q"] == 1

    await asyncio.sleep(9)
    await results.get(QUERY, INTERVAL, DEADLINE)
    assert backend.fetches["q"] == 1

    await asyncio.sleep(2)
    await results.get(QUERY, INTERVAL, DEADLINE)
    assert backend.fetches["q"] == 2


async def test_on_read_is_called_with_hit_or_miss():
    seen: list[bool] = []
    backend = ScriptedBackend(results={"q": (raw(1),)})
    results = QueryCache(Fetcher({"b": backend}, loop_clock), on_read=seen.append)
    for _ in range(3):
        await results.get(QUERY, INTERVAL, DEADLINE)
    assert seen == [False, True, True]


async def test_query_is_not_sent_without_a_read():
    backend = ScriptedBackend(results={"q": (raw(1),)})
    await cache(backend).get(QUERY, INTERVAL, DEADLINE)
    await asyncio.sleep(1000)

    assert backend.fetches["q"] == 1


async def test_failure_is_cached_for_one_second():
    backend = ScriptedBackend(results={"q": errors.BackendRejected("no")})
    results = cache(backend)
    assert isinstance(await results.get(QUERY, INTERVAL, DEADLINE), FetchFailure)
    assert isinstance(results.peek(QUERY), FetchFailure)

    backend.results["q"] = (raw(1),)
    await asyncio.sleep(0.5)
    assert isinstance(await results.get(QUERY, INTERVAL, DEADLINE), FetchFailure)
    await asyncio.sleep(0.6)
    assert not isinstance(await results.get(QUERY, INTERVAL, DEADLINE), FetchFailure)


async def test_number_of_cached_results_is_bounded():
    backend = ScriptedBackend(results={f"{number:04}": (raw(1),) for number in range(1000)})
    results = cache(backend, size=10)
    for text in backend.results:
        await results.get(Query("b", text), INTERVAL, DEADLINE)

    assert sum(results.peek(Query("b", text)) is not None for text in backend.results) == 10


async def test_results_with_many_series_take_the_place_of_several_results():
    backend = ScriptedBackend(results={"large": (raw(1),) * 25, "huge": (raw(1),) * 40})
    results = cache(backend, size=10)
    small = [Query("b", str(number)) for number in range(9)]
    for query in (*small, Query("b", "large"), Query("b", "huge")):
        await results.get(query, INTERVAL, DEADLINE)

    assert results.peek(Query("b", "large")) is not None
    assert sum(results.peek(query) is not None for query in small) < 5
    assert results.peek(Query("b", "huge")) is None, "larger than the cache"


async def test_namespace_with_many_selectors_evicts_no_result_of_another_namespace():
    backend = ScriptedBackend(results={"q": (raw(1),)})
    results = cache(backend, size=10)
    quiet = Query("b", "q", reader_namespace="quiet")
    await results.get(quiet, INTERVAL, DEADLINE)
    for number in range(100):
        await results.get(Query("b", str(number), reader_namespace="noisy"), INTERVAL, DEADLINE)

    assert results.peek(quiet) is not None


async def test_closing_cancels_fetches_in_flight():
    results = cache(ScriptedBackend(delay=100))
    read = asyncio.create_task(results.get(QUERY, INTERVAL, timedelta(seconds=200)))
    await asyncio.sleep(1)
    await results.aclose()
    with pytest.raises(asyncio.CancelledError):
        await read


async def test_result_of_a_long_query_is_not_cached():
    long = Query("b", "q" * 10_000)
    backend = ScriptedBackend(results={long.text: (raw(1),)})
    results = cache(backend)
    for _ in range(2):
        assert not isinstance(await results.get(long, INTERVAL, DEADLINE), FetchFailure)

    assert (backend.fetches[long.text], results.peek(long)) == (2, None)
