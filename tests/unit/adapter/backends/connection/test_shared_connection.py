"""One connection for many questions: opened once, replaced when in doubt, closed when nobody is on it."""

import asyncio

import pytest

from adapter.backends.connection.shared_connection import Shared
from adapter.errors import BackendRejected, BackendUnreachable


class Line:
    """A connection that remembers what became of it."""

    def __init__(self, number: int) -> None:
        self.number, self.is_good, self.is_closed = number, True, False

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.is_closed = True


class RequestContext:
    """Opens connections, or does not."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.failures = 0
        self.shared = Shared(self.open, Line.close, lambda line: line.is_good)

    async def open(self) -> Line:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise BackendUnreachable("connection refused")
        self.lines.append(Line(len(self.lines)))
        return self.lines[-1]

    async def number(self) -> int:
        async with self.shared.one() as line:
            await asyncio.sleep(0)
            return line.number


@pytest.fixture
def exchange() -> RequestContext:
    return RequestContext()


async def test_a_crowd_shares_one(exchange: RequestContext) -> None:
    assert await asyncio.gather(*(exchange.number() for _ in range(20))) == [0] * 20
    await exchange.shared.aclose()
    assert [line.is_closed for line in exchange.lines] == [True]


async def test_one_that_ended_is_replaced_before_it_is_used(exchange: RequestContext) -> None:
    assert await exchange.number() == 0
    exchange.lines[0].is_good = False
    assert await exchange.number() == 1
    await exchange.shared.aclose()
    assert [line.is_closed for line in exchange.lines] == [True, True]


@pytest.mark.parametrize("error", [BackendUnreachable("the connection broke"), asyncio.CancelledError(), ValueError()])
async def test_who_leaves_without_an_answer_leaves_it_in_doubt(exchange: RequestContext, error: BaseException) -> None:
    async with exchange.shared.one() as stays:
        with pytest.raises(type(error)):
            async with exchange.shared.one():
                raise error
        assert await exchange.number() == 1
        assert not stays.is_closed
    await exchange.shared.aclose()
    assert [line.is_closed for line in exchange.lines] == [True, True]


async def test_a_refusal_is_an_answer(exchange: RequestContext) -> None:
    with pytest.raises(BackendRejected):
        async with exchange.shared.one():
            raise BackendRejected("no")
    assert await exchange.number() == 0
    await exchange.shared.aclose()


async def test_who_cannot_connect_leaves_it_to_the_next(exchange: RequestContext) -> None:
    exchange.failures = 2
    said = await asyncio.gather(*(exchange.number() for _ in range(4)), return_exceptions=True)
    assert [isinstance(each, BackendUnreachable) for each in said] == [True, True, False, False]
    await exchange.shared.aclose()
