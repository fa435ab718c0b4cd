"""Leader election during failures: no response, suspended process, deleted lease."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from autoscaler.kube.client import KubeClient
from autoscaler.kube.lease import LeaderElector, LeadershipLost
from autoscaler.settings import ControllerOptions
from tests.contract.objects import eventually
from tests.fakes.cluster import Cluster
from tests.fakes.fault_injection import LostResponse
from tests.fakes.plain import plain_connection

LEASE = "/apis/coordination.k8s.io/v1/namespaces/ours/leases/it"
pytestmark = pytest.mark.looptime

QUICK = ControllerOptions(
    lease_duration=timedelta(seconds=1),
    renew_deadline=timedelta(milliseconds=600),
    retry_period=timedelta(milliseconds=50),
    lease_name="it",
    lease_namespace="ours",
)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def clock() -> datetime:
    return NOW + timedelta(seconds=asyncio.get_running_loop().time())


def make(client: KubeClient, identity: str) -> LeaderElector:
    return LeaderElector(client, QUICK, identity=identity, clock=clock)


async def forever() -> None:
    await asyncio.Event().wait()


def leads(elector: LeaderElector) -> Callable[[], Awaitable[bool]]:
    async def is_leader() -> bool:
        return elector.is_leader

    return is_leader


@asynccontextmanager
async def leading(
    cluster: Cluster, identity: str = "first"
) -> AsyncIterator[tuple[LeaderElector, "asyncio.Task[None]"]]:
    async with cluster.client() as client:
        elector = make(client, identity)
        task = asyncio.create_task(elector.run(forever))
        try:
            await eventually(leads(elector))
            yield elector, task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, LeadershipLost):
                await task


async def test_lease_contains_holder_and_times_with_microseconds() -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        elector = LeaderElector(client, QUICK, identity="first", clock=lambda: NOW)
        assert await elector.try_acquire_or_renew()
        lease = cluster.get(LEASE)
        assert lease is not None
        assert lease["spec"] == {
            "holderIdentity": "first",
            "leaseDurationSeconds": 1,
            "acquireTime": "2026-03-01T12:00:00.000000Z",
            "renewTime": "2026-03-01T12:00:00.000000Z",
            "leaseTransitions": 0,
        }


async def test_leadership_is_lost_before_the_lease_expires_if_the_server_does_not_respond() -> None:
    async with Cluster.serving() as cluster, leading(cluster) as (elector, task):
        loop = asyncio.get_running_loop()
        started = loop.time()
        cluster.faults.block()
        with pytest.raises(LeadershipLost):
            await task
        assert not elector.is_leader
        assert loop.time() - started < QUICK.lease_duration.total_seconds()
        cluster.faults.unblock()


async def test_single_failures_do_not_end_leadership() -> None:
    async with Cluster.serving() as cluster, leading(cluster) as (elector, task):
        cluster.faults.fail_next(503, times=2, within="leases")
        cluster.faults.fail_next(409, times=1, verb="update")
        await asyncio.sleep(0.8)
        assert elector.is_leader
        assert not task.done()


async def test_suspended_process_is_no_longer_leader() -> None:
    async with Cluster.serving() as cluster:
        suspended = 0.0
        connection = replace(cluster.connection, now=lambda: asyncio.get_running_loop().time() + suspended)
        async with KubeClient.open(connection) as client:
            elector = make(client, "first")
            assert await elector.try_acquire_or_renew()
            assert elector.is_leader
            suspended = QUICK.renew_deadline.total_seconds()  # the time of the event loop does not advance
            assert not elector.is_leader


def holder(cluster: Cluster) -> str | None:
    lease = cluster.get(LEASE)
    return None if lease is None else str(lease["spec"]["holderIdentity"])


@pytest.mark.parametrize("verb", ["create", "update"])
async def test_lease_is_acquired_although_the_response_to_the_write_was_lost(verb: str) -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        if verb == "update":
            assert await make(client, "earlier").try_acquire_or_renew()
        path = "/leases" if verb == "create" else "/leases/it"
        cluster.faults.lost_responses.append(LostResponse(verb, path, delay=1.0))
        elector = make(client, "first")
        task = asyncio.create_task(elector.run(forever))
        await asyncio.sleep(2.5)
        assert elector.is_leader
        assert holder(cluster) == "first"
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert holder(cluster) == ""


async def test_renewals_without_response_do_not_end_leadership() -> None:
    async with Cluster.serving() as cluster, leading(cluster) as (elector, task):
        for _ in range(5):
            cluster.faults.lost_responses.append(LostResponse("update", "/leases/it", delay=0.4))
            await asyncio.sleep(0.5)
            assert elector.is_leader
        assert not task.done()


@pytest.mark.parametrize("delay", [0.2, 0.9])
async def test_lease_is_released_although_a_write_has_no_response_yet(delay: float) -> None:
    async with Cluster.serving() as cluster, leading(cluster) as (_, task):
        cluster.faults.lost_responses.append(LostResponse("update", "/leases/it", delay=delay))
        await asyncio.sleep(0.1)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert holder(cluster) == ""


async def test_lease_that_was_acquired_without_response_is_released() -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        cluster.faults.lost_responses.append(LostResponse("create", "/leases", delay=0.2))
        task = asyncio.create_task(make(client, "first").run(forever))
        await asyncio.sleep(0.1)
        assert holder(cluster) == "first"
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert holder(cluster) == ""


def test_clock_of_leases_includes_the_time_of_a_suspension(monkeypatch) -> None:
    monkeypatch.setattr("time.clock_gettime", {time.CLOCK_BOOTTIME: 5000.0, time.CLOCK_MONOTONIC: 100.0}.__getitem__)
    assert plain_connection(1).now() == 5000.0


@pytest.mark.parametrize("seconds", [2.6, 4.5])
async def test_lease_is_acquired_and_renewed_although_every_request_takes_seconds(seconds: float) -> None:
    options = ControllerOptions(lease_name="it", lease_namespace="ours")
    async with Cluster.serving() as cluster, cluster.client() as client:
        cluster.faults.delay = seconds
        elector = LeaderElector(client, options, identity="first", clock=clock)
        task = asyncio.create_task(elector.run(forever))
        await asyncio.sleep(30)
        assert elector.is_leader
        for _ in range(100):
            await asyncio.sleep(1)
            assert elector.is_leader
        task.cancel()
        await asyncio.wait((task,))


async def test_reason_why_the_lease_is_not_acquired_is_logged(caplog) -> None:
    caplog.set_level("INFO")
    async with Cluster.serving() as cluster, cluster.client() as client:
        cluster.faults.delay = 60.0
        assert not await make(client, "first").try_acquire_or_renew()
    [record] = [record for record in caplog.records if record.message == "failed to acquire or renew lease"]
    assert record.error.endswith("request timed out")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(None, id="null"),
        pytest.param("text", id="text"),
        pytest.param({"holderIdentity": 7}, id="holder is a number"),
        pytest.param({"holderIdentity": "other", "leaseDurationSeconds": 10**30}, id="duration of 30 digits"),
        pytest.param({"holderIdentity": "other", "leaseTransitions": "many"}, id="transitions is a text"),
    ],
)
async def test_malformed_lease_does_not_raise(spec: object) -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        elector = make(client, "first")
        assert await elector.try_acquire_or_renew()
        key = ("ours", "it")
        stored = cluster.storage._objects["coordination.k8s.io", "leases"][key]
        cluster.storage._objects["coordination.k8s.io", "leases"][key] = {**stored, "spec": spec}
        second = make(client, "second")
        await second.try_acquire_or_renew()
        assert second.is_leader == (spec is None)


async def test_lease_of_a_vanished_leader_is_acquired_after_it_has_expired() -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        loop = asyncio.get_running_loop()
        first = make(client, "first")
        assert await first.try_acquire_or_renew()
        started = loop.time()  # the first process never renews
        async with leading(cluster, "second") as (second, _):
            assert not first.is_leader
            assert loop.time() - started >= QUICK.lease_duration.total_seconds()
            assert second.holder == "second"
            lease = cluster.get(LEASE)
            assert lease is not None
            assert lease["spec"]["leaseTransitions"] == 1


async def test_at_most_one_process_is_leader() -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        electors = [make(client, f"number {number}") for number in range(5)]
        tasks = [asyncio.create_task(elector.run(forever)) for elector in electors]
        max_leaders = 0
        for _ in range(100):
            await asyncio.sleep(0.01)
            max_leaders = max(max_leaders, sum(elector.is_leader for elector in electors))
        assert max_leaders == 1
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_deleted_lease_is_created_again() -> None:
    async with Cluster.serving() as cluster, leading(cluster) as (elector, task):
        cluster.delete(LEASE)

        async def is_back() -> bool:
            return cluster.get(LEASE) is not None

        await eventually(is_back)
        assert elector.is_leader
        assert not task.done()


async def test_lease_is_released_if_the_work_fails() -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    async with Cluster.serving() as cluster, cluster.client() as client:
        elector = make(client, "first")
        with pytest.raises(ZeroDivisionError):
            await elector.run(fail)
        assert not elector.is_leader
        lease = cluster.get(LEASE)
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == ""


async def test_work_ends_before_the_lease_is_released() -> None:
    order: list[str] = []

    async with Cluster.serving() as cluster, cluster.client() as client:
        elector = make(client, "first")

        async def work() -> None:
            try:
                await forever()
            finally:
                lease = cluster.get(LEASE)
                assert lease is not None
                order.append(f"stopped while held by {lease['spec']['holderIdentity']}")

        task = asyncio.create_task(elector.run(work))
        await eventually(leads(elector))
        await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert order == ["stopped while held by first"]


async def test_lease_is_released_if_the_process_is_stopped_right_after_acquiring_it() -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        elector = make(client, "first")
        task = asyncio.create_task(elector.run(forever))
        while not elector.is_leader:  # noqa: ASYNC110 - the stop must follow in the same iteration of the loop
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,))
        lease = cluster.get(LEASE)
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == ""
