"""The worker pool: slow reconciles do not block fast ones."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from autoscaler.controller.worker_pool import WorkerPool, continue_in_task

pytestmark = pytest.mark.looptime


class Reconciles:
    def __init__(self, durations, size=2, slow_pool_size=2):
        self.durations = durations
        self.started = []
        self.ended = []
        self.pool = WorkerPool(size, self.reconcile, lambda: None, slow_pool_size)

    async def reconcile(self, key):
        self.started.append((asyncio.get_running_loop().time(), key))
        await continue_in_task()
        await asyncio.sleep(self.durations.get(key, 0.05))
        self.ended.append(key)

    @property
    def is_idle(self):
        return not (self.pool._tasks or self.pool._waiting)


@asynccontextmanager
async def running(durations, **sizes):
    reconciles = Reconciles(durations, **sizes)
    try:
        yield reconciles
    finally:
        await reconciles.pool.close()


async def test_number_of_concurrent_reconciles_is_limited():
    async with running({}) as reconciles:
        reconciles.pool.start("a")
        assert reconciles.pool.has_capacity
        reconciles.pool.start("b")
        assert not reconciles.pool.has_capacity
        await asyncio.sleep(0.2)
        assert reconciles.pool.has_capacity
        assert reconciles.is_idle


async def test_slow_reconcile_moves_to_the_slow_pool():
    async with running({"slow": 60}, size=1) as reconciles:
        reconciles.pool.start("slow")
        await asyncio.sleep(0.09)
        assert not reconciles.pool.has_capacity
        await asyncio.sleep(0.02)
        assert reconciles.pool.has_capacity


async def test_key_that_was_slow_starts_in_the_slow_pool():
    async with running({"slow": 2}, size=1) as reconciles:
        reconciles.pool.start("slow")
        await asyncio.sleep(3)
        reconciles.pool.start("slow")
        assert reconciles.pool.has_capacity


async def test_key_returns_to_the_main_pool_after_a_fast_reconcile():
    async with running({"slow": 2}, size=1) as reconciles:
        reconciles.pool.start("slow")
        await asyncio.sleep(3)
        reconciles.durations["slow"] = 0.05
        reconciles.pool.start("slow")
        assert reconciles.pool.has_capacity
        await asyncio.sleep(1)
        reconciles.pool.start("slow")
        assert not reconciles.pool.has_capacity


async def test_slow_keys_wait_only_for_the_slow_pool():
    slow = {"a": 5, "b": 5, "c": 5}
    async with running(slow, size=3, slow_pool_size=2) as reconciles:
        for key in slow:
            reconciles.pool.start(key)
        await asyncio.sleep(6)
        for key in slow:
            reconciles.pool.start(key)
        assert reconciles.pool.has_capacity
        assert not reconciles.is_idle
        await asyncio.sleep(4)
        assert [key for _, key in reconciles.started] == ["a", "b", "c", "a", "b"]
        await asyncio.sleep(2)
        assert [key for _, key in reconciles.started] == ["a", "b", "c", "a", "b", "c"]


async def make_slow(reconciles, keys):
    for key in keys:
        reconciles.pool.start(key)
    await asyncio.sleep(600)
    assert reconciles.is_idle
    reconciles.started.clear()


async def test_slow_keys_of_one_namespace_leave_slots_to_others():
    many = [f"many/{index}" for index in range(80)]
    async with running(dict.fromkeys([*many, "shop/web"], 5), size=100, slow_pool_size=8) as reconciles:
        await make_slow(reconciles, [*many, "shop/web"])
        for key in many:
            reconciles.pool.start(key)
        reconciles.pool.start("shop/web")
        await asyncio.sleep(0)
        assert [key for _, key in reconciles.started] == [*many[:6], "shop/web"]


async def test_waiting_keys_start_in_the_namespace_with_the_fewest_slow_reconciles():
    keys = [f"{namespace}/{index}" for namespace in ("a", "b", "c") for index in range(4)]
    async with running(dict.fromkeys(keys, 5), size=100, slow_pool_size=4) as reconciles:
        await make_slow(reconciles, keys)
        for key in keys:
            reconciles.pool.start(key)
        await asyncio.sleep(60)
        order = [key for _, key in reconciles.started]
        assert order[:4] == ["a/0", "a/1", "a/2", "b/0"]  # nothing else was waiting when a/0 to a/2 started
        assert order[4:8] == ["c/0", "a/3", "b/1", "c/1"]
        assert sorted(order) == keys


async def test_reconciles_that_become_slow_beyond_the_limit_of_their_namespace_do_not_block_others():
    many = [f"many/{index}" for index in range(20)]
    async with running({**dict.fromkeys(many, 500), "shop/web": 5}, size=100, slow_pool_size=8) as reconciles:
        await make_slow(reconciles, ["shop/web"])
        for key in many:
            reconciles.pool.start(key)
        await asyncio.sleep(1)
        reconciles.pool.start("shop/web")
        await asyncio.sleep(6)
        assert reconciles.ended[-1] == "shop/web"
        await asyncio.sleep(600)
        assert (reconciles.pool._occupied, reconciles.pool._running) == (0, {})


async def test_forgotten_key_is_no_longer_slow():
    async with running({"slow": 2}, size=1) as reconciles:
        reconciles.pool.start("slow")
        await asyncio.sleep(3)
        reconciles.pool.forget("slow")
        reconciles.pool.start("slow")
        assert not reconciles.pool.has_capacity


async def test_close_cancels_all_reconciles():
    async with running({"slow": 60}) as reconciles:
        reconciles.pool.start("slow")
        await asyncio.sleep(0)
        await reconciles.pool.close()
        assert reconciles.is_idle
        assert reconciles.ended == []


async def test_failed_reconcile_frees_its_worker(caplog):
    async def fail(_key):
        raise RuntimeError("no")

    pool = WorkerPool(1, fail, lambda: None)
    pool.start("a")
    assert pool.has_capacity
    assert "reconcile failed" in caplog.text


async def complete(_key):
    """Reconcile without waiting."""


async def test_reconcile_that_does_not_wait_is_complete_at_once_and_needs_no_worker():
    pool = WorkerPool(1, complete, lambda: None)
    tasks = asyncio.all_tasks()
    pool.start("a")
    pool.start("b")
    assert pool.has_capacity
    assert asyncio.all_tasks() == tasks


async def test_slow_key_returns_to_the_main_pool_after_a_reconcile_that_does_not_wait():
    waits = True

    async def reconcile(_key):
        if waits:
            await continue_in_task()
            await asyncio.sleep(2)

    pool = WorkerPool(1, reconcile, lambda: None)
    pool.start("slow")
    await asyncio.sleep(3)
    waits = False
    pool.start("slow")
    waits = True
    pool.start("slow")
    assert not pool.has_capacity
    await pool.close()


async def test_reconcile_that_fails_after_waiting_frees_its_worker(caplog):
    async def fail(_key):
        await continue_in_task()
        raise RuntimeError("no")

    pool = WorkerPool(1, fail, lambda: None)
    pool.start("a")
    await asyncio.sleep(0.01)
    assert pool.has_capacity
    assert "reconcile failed" in caplog.text
