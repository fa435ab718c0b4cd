import asyncio
from datetime import timedelta

import pytest

from adapter.ttl_cache import TTLCache


class Loader:
    """Loads a value after one turn of the event loop and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.fails = False

    async def load(self) -> str:
        self.calls += 1
        await asyncio.sleep(0)
        if self.fails:
            raise RuntimeError("load failed")
        return f"value {self.calls}"


class Timer:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def ttl(value: str) -> timedelta:
    return timedelta(seconds=1 if value == "value 1" else 10)


@pytest.fixture
def loader() -> Loader:
    return Loader()


@pytest.fixture
def timer() -> Timer:
    return Timer()


@pytest.fixture
def cache(timer: Timer) -> TTLCache[str, str]:
    return TTLCache(2, timer)


async def test_value_is_cached_until_its_ttl_expires(cache: TTLCache[str, str], loader: Loader, timer: Timer):
    assert await cache.get_or_load("key", loader.load, ttl) == "value 1"
    timer.now = 0.9
    assert await cache.get_or_load("key", loader.load, ttl) == "value 1"
    timer.now = 1.1
    assert cache.get("key") is None
    assert await cache.get_or_load("key", loader.load, ttl) == "value 2"


async def test_value_with_a_ttl_of_zero_is_not_cached(cache: TTLCache[str, str], loader: Loader):
    assert await cache.get_or_load("key", loader.load, lambda _: timedelta()) == "value 1"
    assert cache.get("key") is None


async def test_concurrent_readers_of_a_missing_key_cause_one_load(cache: TTLCache[str, str], loader: Loader):
    values = await asyncio.gather(*(cache.get_or_load("key", loader.load, ttl) for _ in range(100)))

    assert set(values) == {"value 1"}
    assert loader.calls == 1


async def test_failed_load_is_not_cached(cache: TTLCache[str, str], loader: Loader):
    loader.fails = True
    with pytest.raises(RuntimeError):
        await cache.get_or_load("key", loader.load, ttl)
    loader.fails = False

    assert await cache.get_or_load("key", loader.load, ttl) == "value 2"


async def test_cancelling_one_reader_does_not_cancel_the_load(cache: TTLCache[str, str], loader: Loader):
    cancelled = asyncio.create_task(cache.get_or_load("key", loader.load, ttl))
    waiting = asyncio.create_task(cache.get_or_load("key", loader.load, ttl))
    await asyncio.sleep(0)
    cancelled.cancel()

    assert await waiting == "value 1"


async def test_cache_holds_at_most_max_entries(cache: TTLCache[str, str], loader: Loader):
    for key in "abc":
        await cache.get_or_load(key, loader.load, ttl)
    await cache.get_or_load("a", loader.load, ttl)

    assert loader.calls == 4


async def test_aclose_cancels_loads_in_flight(cache: TTLCache[str, str]):
    reader = asyncio.create_task(cache.get_or_load("key", lambda: asyncio.sleep(60, "late"), ttl))
    await asyncio.sleep(0)
    await cache.aclose()

    with pytest.raises(asyncio.CancelledError):
        await reader
