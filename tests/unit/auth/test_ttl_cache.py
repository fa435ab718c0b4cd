"""What was found out, remembered for a while, asked once."""

import asyncio
from datetime import timedelta

import pytest

from adapter.auth.tokens import bearer_token
from adapter.auth.ttl_cache import Memory


class Oracle:
    """Answers, slowly, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.broken = False

    async def ask(self) -> str:
        self.asked += 1
        await asyncio.sleep(0)
        if self.broken:
            raise RuntimeError("no answer")
        return f"answer {self.asked}"


class Timer:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture
def timer() -> Timer:
    return Timer()


@pytest.fixture
def memory(timer: Timer) -> Memory[str, str]:
    return Memory(2, lambda answer: timedelta(seconds=1 if answer == "answer 1" else 10), timer)


async def test_an_answer_is_remembered_for_its_lifetime(memory: Memory[str, str], oracle: Oracle, timer: Timer) -> None:
    assert await memory.recall("who", oracle.ask) == "answer 1"
    timer.now = 0.9
    assert await memory.recall("who", oracle.ask) == "answer 1"
    timer.now = 1.1
    assert await memory.recall("who", oracle.ask) == "answer 2"


async def test_a_hundred_who_ask_together_ask_once(memory: Memory[str, str], oracle: Oracle) -> None:
    answers = await asyncio.gather(*(memory.recall("who", oracle.ask) for _ in range(100)))
    assert set(answers) == {"answer 1"}
    assert oracle.asked == 1


async def test_a_failure_is_not_remembered(memory: Memory[str, str], oracle: Oracle) -> None:
    oracle.broken = True
    with pytest.raises(RuntimeError):
        await memory.recall("who", oracle.ask)
    oracle.broken = False
    assert await memory.recall("who", oracle.ask) == "answer 2"


async def test_one_who_leaves_does_not_spoil_it_for_the_others(memory: Memory[str, str], oracle: Oracle) -> None:
    impatient = asyncio.create_task(memory.recall("who", oracle.ask))
    patient = asyncio.create_task(memory.recall("who", oracle.ask))
    await asyncio.sleep(0)
    impatient.cancel()
    assert await patient == "answer 1"


async def test_it_never_holds_more_than_its_size(memory: Memory[str, str], oracle: Oracle) -> None:
    for name in "abc":
        await memory.recall(name, oracle.ask)
    await memory.recall("a", oracle.ask)
    assert oracle.asked == 4


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bEaReR abc", "abc"),
        ("  Bearer abc  ", "abc"),
        ("Bearer abc def", "abc"),
        ("Bearer", ""),
        ("Bearer ", ""),
        ("Bearer  abc", ""),
        ("Basic abc", ""),
        ("abc", ""),
        ("", ""),
    ],
)
def test_a_token_is_taken_out_of_the_header_as_kubernetes_does(header: str, token: str) -> None:
    assert bearer_token(header) == token
