"""Account of several answers at once."""

import asyncio

from tests.unit.adapter.served import METRIC, served


async def test_all_that_are_answered_are_counted_and_told():
    async with served() as it:
        asked = [asyncio.create_task(it.session.get(f"{METRIC}?pretty={number}")) for number in range(50)]
        await it.backend.asked.wait()
        it.backend.may_answer.set()
        await asyncio.gather(*asked)

        assert [line["status"] for line in it.lines] == [200] * 50
        assert len({line["audit"] for line in it.lines}) == 50
        assert it.figure("steadyscale_requests_total", endpoint="metric", code="200") == 50
        assert it.figure("steadyscale_authorizations_total", result="passed") == 50


async def test_an_answer_is_told_of_soon_and_once():
    async with served() as it:
        it.backend.may_answer.set()
        for number in range(3):
            await it.session.get(METRIC)
            while len(it.written) <= number:  # noqa: ASYNC110 - written without being asked for
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)

        assert len(it.written) == it.figure("steadyscale_requests_total", endpoint="metric", code="200") == 3


async def test_many_are_written_without_waiting_for_more():
    async with served() as it:
        it.backend.may_answer.set()
        journal = it.server._journal
        await it.session.get(METRIC)
        (answered,) = journal._answered
        journal.write()
        for _ in range(40):
            journal.add(answered, asyncio.get_running_loop())

        assert len(it.written) == 1 + 32


async def test_an_answer_is_told_even_if_the_server_stops_right_after_it():
    async with served() as it:
        it.backend.may_answer.set()
        await it.session.get(METRIC)

    assert [line["metric"] for line in it.written] == ["m"]
