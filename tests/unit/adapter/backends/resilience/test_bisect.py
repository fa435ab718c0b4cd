import asyncio
import contextlib
import math
from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.backends.resilience.bisect import SettingApart
from adapter.errors import BackendError, BackendRejected, BadQuery

TIME = timedelta(seconds=5)


class System:
    """Doubles numbers, many at a time; one that is bad makes it refuse all that came with it."""

    def __init__(self, *bad: int, groups: int = 1) -> None:
        self.bad = set(bad)
        self.calls: list[list[int]] = []
        self.fails: BackendError | None = None
        self.left = math.inf
        """How many more calls are answered, before everyone waits in vain."""

        self.apart: SettingApart[int, int] = SettingApart(self.call, text=str, together=lambda each: each % groups)

    async def call(self, questions: Sequence[int], ends: float) -> Sequence[int | BackendError]:
        self.calls.append(list(questions))
        await asyncio.sleep(0)
        assert ends > asyncio.get_running_loop().time()
        self.left -= 1
        if self.left < 0:
            await asyncio.sleep(600)
        if self.fails is not None:
            raise self.fails
        if self.bad & set(questions):
            raise BadQuery("one of them")
        return [each * 2 for each in questions]

    async def send(self, questions: Sequence[int]) -> list[int | str]:
        self.calls.clear()
        found = await self.apart.send(questions, TIME)
        return [type(each).__name__ if isinstance(each, BackendError) else each for each in found]


def expected(questions: Sequence[int], bad: set[int]) -> list[int | str]:
    return ["BadQuery" if each in bad else each * 2 for each in questions]


@given(
    questions=st.lists(st.integers(0, 60), max_size=40, unique=True),
    bad=st.sets(st.integers(0, 60), max_size=6),
    groups=st.integers(1, 4),
)
def test_whoever_is_bad_the_others_have_their_answers_at_once_and_by_few_calls_from_then_on(
    questions: list[int], bad: set[int], groups: int
) -> None:
    async def run() -> None:
        system = System(*bad, groups=groups)
        assert await system.send(questions) == expected(questions, bad)
        sought = bad & set(questions)
        most = groups + len(sought) * 2 * (math.ceil(math.log2(max(len(questions), 2))) + 1)
        assert len(system.calls) <= most
        assert await system.send(questions) == expected(questions, bad)
        assert len(system.calls) <= groups + len(sought), "each bad one has a call of its own, and nobody is looked for"

    asyncio.run(run())


async def test_whom_a_refusal_names_is_not_looked_for():
    calls = []

    async def call(questions: Sequence[int], _: float) -> Sequence[int | BackendError]:
        calls.append(len(questions))
        if bad := [place for place, each in enumerate(questions) if each in {3, 30}]:
            raise BadQuery("no", detail=str(bad[0]))
        return [each * 2 for each in questions]

    apart: SettingApart[int, int] = SettingApart(call, text=str, blamed=lambda error: {int(error.detail)})
    found = await apart.send(range(40), TIME)
    assert [place for place, each in enumerate(found) if isinstance(each, BadQuery)] == [3, 30]
    assert all(each == place * 2 for place, each in enumerate(found) if place not in {3, 30})
    assert sorted(calls) == [1, 1, 38, 39, 40]


async def test_who_is_good_again_goes_with_the_others():
    system = System(3)
    await system.send(range(8))
    system.bad.clear()
    assert await system.send(range(8)) == expected(range(8), set())
    assert sorted(map(len, system.calls)) == [1, 7]
    await system.send(range(8))
    assert system.calls == [list(range(8))]


async def test_a_failure_that_is_no_questions_is_everyones_and_nobody_is_looked_for():
    system = System()
    system.fails = BackendRejected("asked too often")
    assert await system.send(range(8)) == ["BackendRejected"] * 8
    assert len(system.calls) == 1


async def test_a_search_that_is_cut_short_goes_on_with_the_next():
    system, questions = System(21), list(range(35))
    for _ in range(10):
        system.left = 3
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                if await system.send(questions) == expected(questions, {21}):
                    return
    pytest.fail("it was never found")


async def test_bad_ones_of_long_ago_are_forgotten():
    system = System(*range(1500))
    for number in range(1500):
        await system.send([number])
    assert len(system.apart._suspects) == 1000


async def test_who_leaves_ends_the_calls():
    system = System()
    sending = asyncio.create_task(system.apart.send([1, 2], TIME))
    await asyncio.sleep(0)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert not asyncio.all_tasks() - {asyncio.current_task()}
