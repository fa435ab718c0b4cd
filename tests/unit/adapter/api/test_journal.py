"""Account of many answers at once."""

import asyncio

from tests.unit.adapter.served import METRIC, served


async def test_all_that_are_answered_in_one_turn_are_counted_and_told():
    async with served() as it:
        asked = [asyncio.create_task(it.session.get(f"{METRIC}?pretty={number}")) for number in range(9)]
        await it.backend.asked.wait()
        it.backend.may_answer.set()
        await asyncio.gather(*asked)

        assert [line["status"] for line in it.lines] == [200] * 9
        assert len({line["audit"] for line in it.lines}) == 9
        assert it.figure("steadyscale_requests_total", endpoint="metric", code="200") == 9
        assert it.figure("steadyscale_authorizations_total", result="passed") == 9


async def test_each_turn_is_told_of_and_none_twice():
    async with served() as it:
        it.backend.may_answer.set()
        for _ in range(3):
            await it.session.get(METRIC)

        assert len(it.lines) == it.figure("steadyscale_requests_total", endpoint="metric", code="200") == 3


async def test_an_answer_is_told_even_if_the_server_stops_right_after_it():
    async with served() as it:
        it.backend.may_answer.set()
        await it.session.get(METRIC)

    assert [line["metric"] for line in it.lines] == ["m"]
