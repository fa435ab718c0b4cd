"""Slow visits never stand in the way of the others."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from autoscaler.controller.worker_pool import WorkerPool

pytestmark = pytest.mark.looptime


class Visits:
    def __init__(self, takes, width=2, slow_width=2):
        self.takes = takes
        self.began = []
        self.ended = []
        self.lanes = WorkerPool(width, self.visit, lambda: None, slow_width)

    async def visit(self, key):
        self.began.append((asyncio.get_running_loop().time(), key))
        await asyncio.sleep(self.takes.get(key, 0.05))
        self.ended.append(key)


@asynccontextmanager
async def visiting(takes, **widths):
    visits = Visits(takes, **widths)
    try:
        yield visits
    finally:
        await visits.lanes.close()


async def test_no_more_than_so_many_at_once():
    async with visiting({}) as visits:
        visits.lanes.start("a")
        assert visits.lanes.has_room
        visits.lanes.start("b")
        assert not visits.lanes.has_room
        await asyncio.sleep(0.2)
        assert visits.lanes.has_room
        assert visits.lanes.is_empty


async def test_a_slow_visit_steps_aside_after_a_moment():
    async with visiting({"slow": 60}, width=1) as visits:
        visits.lanes.start("slow")
        await asyncio.sleep(0.09)
        assert not visits.lanes.has_room
        await asyncio.sleep(0.02)
        assert visits.lanes.has_room


async def test_who_was_slow_begins_aside():
    async with visiting({"slow": 2}, width=1) as visits:
        visits.lanes.start("slow")
        await asyncio.sleep(3)
        visits.lanes.start("slow")
        assert visits.lanes.has_room


async def test_who_was_slow_once_is_back_among_the_others_with_the_first_prompt_visit():
    async with visiting({"slow": 2}, width=1) as visits:
        visits.lanes.start("slow")
        await asyncio.sleep(3)
        visits.takes["slow"] = 0.05
        visits.lanes.start("slow")
        assert visits.lanes.has_room
        await asyncio.sleep(1)
        visits.lanes.start("slow")
        assert not visits.lanes.has_room


async def test_slow_ones_wait_for_each_other_and_for_nobody_else():
    slow = {"a": 5, "b": 5, "c": 5}
    async with visiting(slow, width=3, slow_width=2) as visits:
        for key in slow:
            visits.lanes.start(key)
        await asyncio.sleep(6)
        for key in slow:
            visits.lanes.start(key)
        assert visits.lanes.has_room
        assert not visits.lanes.is_empty
        await asyncio.sleep(4)
        assert [key for _, key in visits.began] == ["a", "b", "c", "a", "b"]
        await asyncio.sleep(2)
        assert [key for _, key in visits.began] == ["a", "b", "c", "a", "b", "c"]


async def test_who_is_gone_is_slow_no_more():
    async with visiting({"slow": 2}, width=1) as visits:
        visits.lanes.start("slow")
        await asyncio.sleep(3)
        visits.lanes.forget("slow")
        visits.lanes.start("slow")
        assert not visits.lanes.has_room


async def test_closing_gives_up_all_visits():
    async with visiting({"slow": 60}) as visits:
        visits.lanes.start("slow")
        await asyncio.sleep(0)
        await visits.lanes.close()
        assert visits.lanes.is_empty
        assert visits.ended == []


async def test_a_visit_that_fails_makes_room(caplog):
    async def fail(_key):
        raise RuntimeError("no")

    lanes = WorkerPool(1, fail, lambda: None)
    lanes.start("a")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert lanes.has_room
    assert "a visit failed" in caplog.text
