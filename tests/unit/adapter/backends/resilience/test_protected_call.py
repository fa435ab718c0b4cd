import asyncio
from datetime import timedelta

import pytest

from adapter.backends.resilience.protected_call import Guard
from adapter.backends.settings import CircuitBreakerSettings
from adapter.errors import (
    Ambiguous,
    BackendBusy,
    BackendError,
    BackendMetricUnknown,
    BackendRejected,
    BackendTimeout,
    BackendUnauthorized,
    BackendUnreachable,
    BadQuery,
)
from tests.fakes.backend import loop_clock

pytestmark = pytest.mark.looptime
SECOND = timedelta(seconds=1)


def guard(failures: int = 2) -> Guard:
    return Guard(CircuitBreakerSettings(failures=failures, rest=SECOND, longest=SECOND * 4), loop_clock)


async def answer() -> int:
    return 42


async def forever() -> int:
    await asyncio.sleep(3600)
    return 0


async def gone() -> int:
    raise BackendUnreachable("connection refused", detail="x")


async def test_an_answer_passes():
    assert await guard().ask("q", SECOND, answer) == 42


async def test_a_deadline_ends_the_wait_and_the_question():
    ended = []

    async def ask() -> int:
        try:
            return await forever()
        except asyncio.CancelledError:
            ended.append(asyncio.get_running_loop().time())
            raise

    with pytest.raises(BackendTimeout, match=r"^no answer within 1s$"):
        await guard().ask("q", SECOND, ask)
    assert ended == [pytest.approx(0.98)]


@pytest.mark.parametrize("raised", [TimeoutError("a library's"), BackendTimeout("its own words", detail="said")])
async def test_who_noticed_that_it_was_too_slow_makes_no_difference(raised: Exception):
    async def ask() -> int:
        raise raised

    with pytest.raises(BackendTimeout, match=r"^no answer within 1s$"):
        await guard().ask("q", SECOND, ask)


async def test_who_answers_nobody_is_left_in_peace_and_tried_again():
    door, asked = guard(), []

    async def ask() -> int:
        asked.append(1)
        return await gone()

    for number in range(10):
        with pytest.raises(BackendUnreachable, match=r"^connection refused$"):
            await door.ask(f"q{number}", SECOND, ask)
    assert len(asked) == 2
    await asyncio.sleep(1.1)
    assert await door.ask("q", SECOND, answer) == 42
    assert await door.ask("q", SECOND, answer) == 42


@pytest.mark.parametrize("kind", [Ambiguous, BackendRejected, BackendUnauthorized, BackendMetricUnknown, BadQuery])
async def test_who_answers_is_there_whatever_the_answer(kind: type[BackendError]):
    door = guard()

    async def ask() -> int:
        raise kind("HTTP 404 Not Found")

    for number in range(10):
        with pytest.raises(kind):
            await door.ask(f"q{number}", SECOND, ask)
    assert await door.ask("q", SECOND, answer) == 42


async def test_who_is_asked_too_often_is_left_in_peace():
    door = guard()

    async def ask() -> int:
        raise BackendBusy("HTTP 429 Too Many Requests")

    for number in range(2):
        with pytest.raises(BackendBusy):
            await door.ask(f"q{number}", SECOND, ask)
    with pytest.raises(BackendBusy, match=r"^HTTP 429 Too Many Requests$"):
        await door.ask("q", SECOND, answer)


async def test_closing_ends_what_is_under_way_and_lets_nothing_through():
    door = guard()
    waiting = asyncio.create_task(door.ask("q", SECOND * 60, forever))
    await asyncio.sleep(0.5)
    await door.aclose()
    with pytest.raises(BackendUnreachable, match="no longer configured"):
        await waiting
    with pytest.raises(BackendUnreachable, match="no longer configured"):
        await door.ask("q", SECOND, answer)
    assert asyncio.get_running_loop().time() == pytest.approx(0.5)


async def test_who_is_cancelled_leaves_the_trial_to_the_next():
    door = guard(failures=1)
    with pytest.raises(BackendUnreachable):
        await door.ask("q", SECOND, gone)
    await asyncio.sleep(1.1)
    trial = asyncio.create_task(door.ask("q", SECOND, forever))
    await asyncio.sleep(0.1)
    trial.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trial
    assert await door.ask("q", SECOND, answer) == 42
