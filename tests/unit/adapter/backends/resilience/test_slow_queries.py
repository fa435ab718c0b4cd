"""A slow question among many in one call: found in few intervals, and nobody else's trouble from then on."""

import asyncio
import math
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta

import pytest

from adapter.backends.resilience.batching import Batcher
from adapter.backends.resilience.bisect import SettingApart
from adapter.backends.resilience.protected_call import Guard
from adapter.backends.resilience.rate_limit import Pace
from adapter.backends.settings import CircuitBreakerSettings
from adapter.errors import BackendError, BadQuery
from tests.fakes.backend import loop_clock

pytestmark = pytest.mark.looptime
DEADLINE = timedelta(seconds=5)
INTERVAL = 15.0
LATE = "no answer within 5s"
HUNDRED = range(100)
LONGEST_REST = 300.0


class System:
    """Doubles numbers, many at a time, each call as slowly as its slowest question."""

    def __init__(self, *slow: int, bad: Collection[int] = ()) -> None:
        self.takes = dict.fromkeys(slow, 3600.0)
        self.usually = 0.2
        self.bad = set(bad)
        self.refuses_after = 0.0
        self.calls: list[list[int]] = []
        self.least_time = math.inf
        """The least that any call had."""

        self.pace = Pace(at_once=1000, per_second=math.inf)
        apart: SettingApart[int, int] = SettingApart(self.call, text=str)
        self.batcher: Batcher[int, int] = Batcher(apart.send, most=500, together=apart.together)

    async def call(self, questions: Sequence[int], ends: float) -> Sequence[int | BackendError]:
        self.least_time = min(self.least_time, ends - asyncio.get_running_loop().time())
        async with self.pace.turn():
            self.calls.append(list(questions))
            if self.bad & set(questions):
                await asyncio.sleep(self.refuses_after)
                raise BadQuery("one of them")
            await asyncio.sleep(max(self.takes.get(each, self.usually) for each in questions))
            return [each * 2 for each in questions]

    async def ask(self, question: int, deadline: timedelta = DEADLINE) -> int | str:
        try:
            return await self.batcher.ask(question, deadline)
        except BackendError as error:
            return error.message

    async def interval(self, questions: Iterable[int] = HUNDRED) -> dict[int, int | str]:
        """Ask all of these at once, and wait until it is time to do so again."""
        self.calls.clear()
        loop, asked = asyncio.get_running_loop(), list(questions)
        begun = loop.time()
        found = await asyncio.gather(*(self.ask(each) for each in asked))
        await asyncio.sleep(begun + INTERVAL - loop.time())
        return dict(zip(asked, found, strict=True))

    async def until_others_are_answered(self, slow: Collection[int]) -> int:
        """Count the intervals until all but the slow ones have their numbers."""
        for number in range(1, 50):
            found = await self.interval()
            if all(found[each] == each * 2 for each in HUNDRED if each not in slow):
                return number
        pytest.fail("some are never answered")

    def sizes(self) -> list[int]:
        return sorted(map(len, self.calls))


def expected(slow: Collection[int], bad: Collection[int] = ()) -> dict[int, int | str]:
    told = {**dict.fromkeys(slow, LATE), **dict.fromkeys(bad, "one of them")}
    return {each: told.get(each, each * 2) for each in HUNDRED}


@pytest.mark.parametrize("slow", [0, 37, 99])
async def test_one_slow_question_is_by_itself_after_few_intervals_and_fails_alone(slow: int):
    system = System(slow)
    assert set((await system.interval()).values()) == {LATE}
    assert await system.until_others_are_answered({slow}) <= math.ceil(math.log2(100))
    for _ in range(20):
        assert await system.interval() == expected({slow})
        assert system.sizes() == [1, 99]


async def test_in_every_interval_of_the_search_half_of_those_who_failed_are_answered():
    system, failed = System(37), []
    for _ in range(9):
        found = await system.interval()
        failed.append(sum(each == LATE for each in found.values()))
    assert failed == [100, 50, 25, 13, 6, 3, 1, 1, 1]


async def test_nobody_waits_for_the_slow_one():
    system = System(37)
    await system.until_others_are_answered({37})
    loop = asyncio.get_running_loop()
    begun, slow = loop.time(), asyncio.create_task(system.ask(37))
    await asyncio.gather(*(system.ask(each, timedelta(seconds=1)) for each in range(30)))
    assert loop.time() - begun < 0.5
    assert await slow == LATE


async def test_who_is_fast_again_goes_with_the_others():
    system = System(37)
    await system.until_others_are_answered({37})
    system.takes.clear()
    assert await system.interval() == expected(())
    assert await system.interval() == expected(())
    assert system.sizes() == [100]


async def test_who_is_barely_in_time_stays_by_itself_since_the_next_time_it_may_not_be():
    system = System(37)
    await system.until_others_are_answered({37})
    for seconds in (4.0, 3600.0, 4.0):
        system.takes[37] = seconds
        found = await system.interval()
        assert found == expected({37} if seconds > 5 else ())
        assert system.sizes() == [1, 99]


@pytest.mark.parametrize("slow", [{3, 80}, {3, 4}, {0, 49, 99}, {10, 11, 12, 13}])
async def test_several_slow_ones_are_found_too(slow: set[int]):
    system = System(*slow)
    assert await system.until_others_are_answered(slow) <= 14
    for _ in range(5):
        await system.interval()
    for _ in range(20):
        found = await system.interval()
        assert found == expected(slow)
        assert max(system.sizes()) == 100 - len(slow)


async def test_a_system_that_is_slow_as_a_whole_is_not_called_much_more_often():
    system = System(*HUNDRED)
    calls = []
    for _ in range(40):
        assert await system.interval() == expected(HUNDRED)
        calls.append(len(system.calls))
    assert calls == [1, *[2] * 16, 1, *[2] * 16, 1, *[2] * 5]
    system.takes.clear()
    assert await system.interval() == expected(())
    await system.interval()
    assert system.sizes() == [100]


async def test_a_slow_one_that_was_known_is_known_after_a_breakdown():
    system = System(37)
    await system.until_others_are_answered({37})
    system.takes = dict.fromkeys(HUNDRED, 3600.0)
    for _ in range(20):
        await system.interval()
    system.takes = {37: 3600.0}
    await system.interval()
    assert await system.interval() == expected({37})
    assert system.sizes() == [1, 99]


async def test_a_slow_one_beside_a_bad_one():
    system = System(60, bad={38})
    assert await system.until_others_are_answered({60, 38}) <= 9
    await system.interval()
    for _ in range(5):
        assert await system.interval() == expected({60}, {38})
        assert system.sizes() == [1, 1, 98]


async def test_who_is_asked_again_after_a_refusal_that_took_its_time_is_not_slow():
    system = System(bad={38})
    system.refuses_after, system.usually = 4.0, 1.0
    await system.interval()
    assert system.sizes() == [50, 50, 100]
    await system.interval()
    assert [len(each) for each in system.calls[:2]] == [50, 50]


async def test_many_slow_ones_leave_connections_to_the_others_and_each_has_its_turn():
    slow = set(range(0, 100, 12))
    system = System(*slow)
    system.pace = Pace(at_once=4, per_second=math.inf)
    assert await system.until_others_are_answered(slow) <= 45
    for _ in range(60):
        await system.interval()
    asked: set[int] = set()
    for _ in range(math.ceil(LONGEST_REST / INTERVAL) * 2):
        assert await system.interval() == expected(slow)
        assert len(system.calls) <= 3
        asked |= {questions[0] for questions in system.calls if len(questions) == 1}
    assert asked == slow
    system.takes.clear()
    for _ in range(math.ceil((LONGEST_REST + DEADLINE.total_seconds()) / INTERVAL) + 1):
        found = await system.interval()
    assert found == expected(())


async def test_who_waits_for_slow_ones_that_come_a_moment_before_is_asked_some_day():
    system = System(0, 1, 2, 3)
    await system.until_others_are_answered({0, 1, 2, 3})
    for _ in range(10):
        await system.interval()
    system.takes[50] = 3600.0
    for _ in range(40):
        before = asyncio.create_task(system.interval(range(4)))
        await asyncio.sleep(1)
        found = await system.interval(range(4, 100))
        await before
    assert system.least_time > DEADLINE.total_seconds() * 0.4, "with less, whoever it is would seem slow"
    assert found == {each: LATE if each == 50 else each * 2 for each in range(4, 100)}


async def test_who_leaves_is_not_slow():
    system = System()
    system.usually = 3.0
    leaving = [asyncio.create_task(system.ask(each)) for each in HUNDRED]
    await asyncio.sleep(2)
    for each in leaving:
        each.cancel()
    await asyncio.gather(*leaving, return_exceptions=True)
    assert await system.interval() == expected(())
    assert system.sizes() == [100]


async def test_who_has_less_time_than_the_others_is_late_for_itself_and_under_no_suspicion():
    system = System()
    system.usually = 3.0
    hasty, *others = await asyncio.gather(system.ask(0, timedelta(seconds=1)), *map(system.ask, range(1, 100)))
    assert hasty == "no answer within 1s"
    assert others == [each * 2 for each in range(1, 100)]
    assert await system.interval() == expected(())
    assert system.sizes() == [100]


async def test_what_a_breaker_tells_of_earlier_says_nothing_of_a_question():
    system = System(*HUNDRED)
    guard = Guard(
        CircuitBreakerSettings(failures=1, rest=timedelta(minutes=10), longest=timedelta(minutes=10)), loop_clock
    )
    sent = []

    async def call(questions: Sequence[int], ends: float) -> Sequence[int | BackendError]:
        sent.append(len(questions))
        left = timedelta(seconds=ends - asyncio.get_running_loop().time())
        return await guard.ask(repr(questions), left, lambda: system.call(questions, ends))

    apart: SettingApart[int, int] = SettingApart(call, text=str)
    for _ in range(10):
        await apart.send(HUNDRED, DEADLINE)
    assert sent == [100, *[50, 50] * 9]
    assert system.sizes() == [100]


async def test_slow_ones_that_come_to_be_just_in_time_are_all_answered():
    slow = {1, 50, 80}
    system = System(*slow)
    await system.until_others_are_answered(slow)
    system.takes = dict.fromkeys(slow, DEADLINE.total_seconds() * 0.6)
    for _ in range(math.ceil(LONGEST_REST / INTERVAL) + 3):
        found = await system.interval()
    for _ in range(5):
        assert found == expected(())
        found = await system.interval()


@pytest.mark.parametrize("usually", [0.2, 2.5, 4.0])
@pytest.mark.parametrize("intervals", [3, 8, 16])
async def test_a_system_that_was_slow_as_a_whole_and_is_not_any_more_answers_everyone_soon(
    usually: float, intervals: int
):
    system = System(*HUNDRED)
    for _ in range(intervals):
        await system.interval()
    system.takes.clear()
    system.usually = usually
    for _ in range(2):
        await system.interval()

    assert await system.interval() == expected(())
