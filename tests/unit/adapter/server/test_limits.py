import asyncio
from contextlib import suppress
from datetime import timedelta

import pytest
from aiohttp.test_utils import make_mocked_request
from prometheus_client import CollectorRegistry, Gauge

from adapter.auth.attributes import attributes_of
from adapter.errors import BadRequest, DeadlineExceeded, TooManyRequests
from adapter.server.limits import ConcurrencyLimit, Deadline, Deadlines, time_for
from adapter.server.request_context import RequestContext

TEN = timedelta(seconds=10)


def exchange(path: str) -> RequestContext:
    request = make_mocked_request("GET", path)
    return RequestContext(request, request.path, request.query, attributes_of("GET", request.path, {}), "id")


def within(limit: timedelta) -> Deadline:
    return Deadlines().within(limit, asyncio.get_running_loop())


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("", 10),
        ("?timeout=", 10),
        ("?timeout=0", 10),
        ("?timeout=1s", 1),
        ("?timeout=1m", 10),
        ("?timeout=1s&timeout=x", 1),
    ],
)
def test_a_caller_may_have_less_time_and_never_more(query: str, seconds: int):
    assert time_for(exchange(f"/apis{query}"), TEN) == timedelta(seconds=seconds)


def test_a_time_that_is_none_is_refused():
    with pytest.raises(BadRequest, match="timeout: 'abc' is not a duration"):
        time_for(exchange("/apis?timeout=abc"), TEN)


def test_so_many_and_no_more_whatever_becomes_of_them():
    registry = CollectorRegistry()
    turnstile = ConcurrencyLimit(1, Gauge("inside", "Inside.", registry=registry))
    with suppress(ZeroDivisionError), turnstile:
        assert registry.get_sample_value("inside") == 1
        with pytest.raises(TooManyRequests), turnstile:
            pass
        _ = 1 // 0

    assert registry.get_sample_value("inside") == 0


@pytest.mark.looptime
async def test_what_takes_too_long_is_cut_off_when_its_time_is_up(looptime):
    with pytest.raises(DeadlineExceeded, match="not ready within 10s"), within(TEN):
        await asyncio.sleep(11)

    assert 10 <= looptime <= 10.02
    assert asyncio.current_task().cancelling() == 0


@pytest.mark.looptime
async def test_what_is_in_time_is_left_alone(looptime):
    with within(TEN):
        await asyncio.sleep(9)
    await asyncio.sleep(9)

    assert looptime == 18


@pytest.mark.looptime
async def test_an_error_inside_is_the_one_that_is_seen():
    with pytest.raises(ZeroDivisionError), within(TEN):
        _ = 1 // 0


@pytest.mark.looptime
async def test_who_is_cancelled_from_outside_is_cancelled_and_not_late():
    async def work() -> None:
        with within(TEN):
            await asyncio.sleep(9)

    task = asyncio.create_task(work())
    await asyncio.sleep(1)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.looptime
async def test_the_shorter_of_two_deadlines_is_the_one_that_is_told():
    with (
        pytest.raises(DeadlineExceeded, match="within 1s"),
        within(TEN),
        within(timedelta(seconds=1)),
    ):
        await asyncio.sleep(100)
