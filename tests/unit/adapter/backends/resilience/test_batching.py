import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from adapter.backends.resilience.batching import Batcher
from adapter.errors import BackendError, BackendRejected, BackendTimeout, BackendUnreachable

pytestmark = pytest.mark.looptime
DEADLINE = timedelta(seconds=5)


class System:
    """Doubles numbers, many at a time; says when and how many it was asked."""

    def __init__(self, takes: float = 1.0, **options: object) -> None:
        self.takes = takes
        self.calls: list[tuple[float, int]] = []
        self.given: list[timedelta] = []
        self.ended = 0
        self.fails: BaseException | None = None
        self.batcher: Batcher[int, int] = Batcher(self.send, **{"most": 500, **options})  # type: ignore[arg-type]

    async def send(self, questions: Sequence[int], deadline: timedelta) -> Sequence[int | BackendError]:
        self.calls.append((round(asyncio.get_running_loop().time(), 3), len(questions)))
        self.given.append(deadline)
        try:
            await asyncio.sleep(self.takes)
        except asyncio.CancelledError:
            self.ended += 1
            raise
        if self.fails is not None:
            raise self.fails
        return [BackendRejected("negative") if each < 0 else each * 2 for each in questions]

    async def ask(self, question: int, deadline: timedelta = DEADLINE) -> int:
        return await self.batcher.ask(question, deadline)


async def test_questions_of_one_moment_are_one_call_and_each_gets_its_own_answer():
    system = System()
    found = await asyncio.gather(*(system.ask(number) for number in range(500)))

    assert found == [number * 2 for number in range(500)]
    assert system.calls == [(0.0, 500)]  # full: nothing to wait for
    assert not asyncio.all_tasks() - {asyncio.current_task()}


async def test_who_comes_within_a_short_while_goes_along():
    system = System(linger=timedelta(milliseconds=100))

    async def later(seconds: float) -> int:
        await asyncio.sleep(seconds)
        return await system.ask(1)

    await asyncio.gather(system.ask(0), later(0.05), later(0.09), later(0.2))
    assert system.calls == [(0.1, 3), (0.3, 1)]


async def test_more_than_fit_are_several_calls():
    system = System(most=3)
    found = await asyncio.gather(*(system.ask(number, timedelta(seconds=20)) for number in range(8)))

    assert found == [number * 2 for number in range(8)]
    assert [count for _, count in system.calls] == [3, 3, 2]


async def test_nobody_waits_for_a_call_that_it_could_not_go_with():
    async def send(questions: Sequence[int], _: timedelta) -> list[int]:
        await asyncio.sleep(3600 if questions[0] % 2 else 0)
        return list(questions)

    batcher: Batcher[int, int] = Batcher(send, most=10, together=lambda question: question % 2)
    found = await asyncio.gather(*(batcher.ask(each, DEADLINE) for each in range(4)), return_exceptions=True)
    assert [found[0], found[2]] == [0, 2]
    assert [type(each) for each in found[1::2]] == [BackendTimeout, BackendTimeout]


async def test_one_bad_question_is_nobody_elses_trouble():
    system = System()
    good, bad = await asyncio.gather(system.ask(1), system.ask(-1), return_exceptions=True)

    assert good == 2
    assert isinstance(bad, BackendRejected)
    assert bad.message == "negative"


@pytest.mark.parametrize(
    ("error", "expected"),
    [(BackendUnreachable("gone", detail="x"), BackendUnreachable), (ZeroDivisionError("a slip"), ZeroDivisionError)],
)
async def test_a_call_that_fails_fails_for_all_each_with_an_error_of_its_own(
    error: BaseException, expected: type[BaseException]
):
    system = System()
    system.fails = error
    found = await asyncio.gather(system.ask(1), system.ask(2), return_exceptions=True)

    assert [type(each) for each in found] == [expected, expected]
    if expected is BackendUnreachable:
        assert found[0] is not found[1]
        assert (found[0].message, found[0].detail) == ("gone", "x")


async def test_each_waits_by_its_own_deadline_and_the_call_goes_on_for_who_has_more():
    system = System(takes=3)
    loop = asyncio.get_running_loop()
    hasty = asyncio.create_task(system.ask(1, timedelta(seconds=1)))
    patient = asyncio.create_task(system.ask(2, timedelta(seconds=10)))
    with pytest.raises(BackendTimeout, match="no answer within 1s"):
        await hasty
    assert loop.time() < 1
    assert await patient == 4
    assert system.given[0] > timedelta(seconds=9)


async def test_a_call_that_takes_all_its_time_can_still_tell_why():
    async def send(_: Sequence[int], left: timedelta) -> list[int]:
        await asyncio.sleep(left.total_seconds())
        raise BackendTimeout("no answer in 4.7s", detail="why")

    batcher: Batcher[int, int] = Batcher(send, most=10)
    with pytest.raises(BackendTimeout, match=r"^no answer within 5s$") as caught:
        await batcher.ask(1, DEADLINE)
    assert caught.value.detail == "why"


async def test_who_is_cancelled_takes_nobody_along_and_the_last_one_ends_the_call():
    system = System(takes=3)
    tasks = [asyncio.create_task(system.ask(number)) for number in range(3)]
    await asyncio.sleep(1)
    tasks[0].cancel()
    await asyncio.sleep(0.1)
    assert system.ended == 0
    tasks[1].cancel()
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0.1)
    assert system.ended == 1
    assert await system.ask(4) == 8


async def test_who_leaves_before_the_call_is_not_asked_for():
    system = System(linger=timedelta(seconds=1))
    leaving = asyncio.create_task(system.ask(1))
    staying = asyncio.create_task(system.ask(2))
    await asyncio.sleep(0.5)
    leaving.cancel()
    assert await staying == 4
    assert [count for _, count in system.calls] == [1]


async def test_an_answer_of_the_wrong_length_answers_nobody():
    async def short(questions: Sequence[int], _deadline: timedelta) -> Sequence[int | BackendError]:
        return list(questions)[1:]

    batcher: Batcher[int, int] = Batcher(short, most=10)
    found = await asyncio.gather(*(batcher.ask(each, DEADLINE) for each in range(2)), return_exceptions=True)
    assert [str(each) for each in found] == ["it answers, but not everything that was asked"] * 2


async def test_closing_ends_calls_and_tells_who_waits():
    system = System(takes=30, most=2, linger=timedelta(seconds=60))
    asked = [asyncio.create_task(system.ask(number)) for number in range(3)]  # two make a call, one waits for company
    await asyncio.sleep(0.5)
    await system.batcher.aclose()
    found = await asyncio.gather(*asked, return_exceptions=True)

    assert [type(each) for each in found] == [BackendUnreachable] * 3
    assert (system.ended, system.calls) == (1, [(0.0, 2)])
    with pytest.raises(BackendUnreachable, match="no longer configured"):
        await system.ask(1)
    assert not asyncio.all_tasks() - {asyncio.current_task()}
