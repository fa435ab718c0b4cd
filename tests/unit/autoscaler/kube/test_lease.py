"""Leadership on bad days: a server that is silent, a process that was frozen, a lease that somebody deletes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

import pytest

from adapter.fakecluster.cluster import Cluster
from autoscaler.kube.client import KubeClient
from autoscaler.kube.lease import LeadershipLost, Lease, LeaseTimes
from tests.contract.objects import eventually

LEASE = "/apis/coordination.k8s.io/v1/namespaces/ours/leases/it"
pytestmark = pytest.mark.looptime

QUICK = LeaseTimes(timedelta(seconds=1), timedelta(milliseconds=600), timedelta(milliseconds=50))
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def clock() -> datetime:
    return NOW + timedelta(seconds=asyncio.get_running_loop().time())


def make(client: KubeClient, identity: str) -> Lease:
    return Lease(client, namespace="ours", name="it", identity=identity, clock=clock, times=QUICK)


async def forever() -> None:
    await asyncio.Event().wait()


def held(lease: Lease) -> Callable[[], Awaitable[bool]]:
    async def is_held() -> bool:
        return lease.is_held

    return is_held


@asynccontextmanager
async def leading(cluster: Cluster, identity: str = "first") -> AsyncIterator[tuple[Lease, "asyncio.Task[None]"]]:
    async with cluster.client() as client:
        lease = make(client, identity)
        task = asyncio.create_task(lease.lead(forever))
        try:
            await eventually(held(lease))
            yield lease, task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, LeadershipLost):
                await task


async def test_the_lease_says_who_leads_since_when_with_all_six_digits() -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        lease = Lease(client, namespace="ours", name="it", identity="first", clock=lambda: NOW, times=QUICK)
        assert await lease._claimed()
        kept = cluster.get(LEASE)
        assert kept is not None
        assert kept["spec"] == {
            "holderIdentity": "first",
            "leaseDurationSeconds": 1,
            "acquireTime": "2026-03-01T12:00:00.000000Z",
            "renewTime": "2026-03-01T12:00:00.000000Z",
            "leaseTransitions": 0,
        }


async def test_a_silent_server_ends_leadership_in_time() -> None:
    async with Cluster.serving() as cluster, leading(cluster) as (lease, task):
        loop = asyncio.get_running_loop()
        began = loop.time()
        cluster.weather.freeze()
        with pytest.raises(LeadershipLost):
            await task
        assert not lease.is_held
        assert loop.time() - began < QUICK.lease_duration.total_seconds()
        cluster.weather.thaw()


async def test_a_hiccup_does_not() -> None:
    async with Cluster.serving() as cluster, leading(cluster) as (lease, task):
        cluster.refuse_next(503, times=2, within="leases")
        cluster.refuse_next(409, times=1, verb="update")
        await asyncio.sleep(0.8)
        assert lease.is_held
        assert not task.done()


async def test_a_process_that_was_frozen_finds_itself_no_leader() -> None:
    async with Cluster.serving() as cluster, leading(cluster) as (lease, _):
        assert lease.is_held
        lease._safe_until -= QUICK.renew_deadline.total_seconds()  # as if that time had passed in a single step
        assert not lease.is_held


async def test_a_leader_that_vanishes_is_succeeded_after_its_time_and_not_before() -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        loop = asyncio.get_running_loop()
        first = make(client, "first")
        assert await first._claimed()
        began = loop.time()  # and is never heard of again
        async with leading(cluster, "second") as (second, _):
            assert not first.is_held
            assert loop.time() - began >= QUICK.lease_duration.total_seconds()
            assert second.holder == "second"
            lease = cluster.get(LEASE)
            assert lease is not None
            assert lease["spec"]["leaseTransitions"] == 1


async def test_two_never_lead_at_once() -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        leases = [make(client, f"number {number}") for number in range(5)]
        tasks = [asyncio.create_task(lease.lead(forever)) for lease in leases]
        most = 0
        for _ in range(100):
            await asyncio.sleep(0.01)
            most = max(most, sum(lease.is_held for lease in leases))
        assert most == 1
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_a_lease_that_is_deleted_is_taken_anew() -> None:
    async with Cluster.serving() as cluster, leading(cluster) as (lease, task):
        cluster.delete(LEASE)

        async def is_back() -> bool:
            return cluster.get(LEASE) is not None

        await eventually(is_back)
        assert lease.is_held
        assert not task.done()


async def test_work_that_fails_lets_go_of_the_lease_and_says_why() -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    async with Cluster.serving() as cluster, cluster.client() as client:
        lease = make(client, "first")
        with pytest.raises(ZeroDivisionError):
            await lease.lead(fail)
        assert not lease.is_held
        left = cluster.get(LEASE)
        assert left is not None
        assert left["spec"]["holderIdentity"] == ""


async def test_work_has_stopped_before_the_lease_is_let_go() -> None:
    order: list[str] = []

    async with Cluster.serving() as cluster, cluster.client() as client:
        lease = make(client, "first")

        async def work() -> None:
            try:
                await forever()
            finally:
                kept = cluster.get(LEASE)
                assert kept is not None
                order.append(f"stopped under {kept['spec']['holderIdentity']}")

        task = asyncio.create_task(lease.lead(work))
        await eventually(held(lease))
        await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert order == ["stopped under first"]
