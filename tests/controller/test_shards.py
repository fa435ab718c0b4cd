"""Several processes with shards, on the in-memory cluster in virtual time; `running_fleet` checks every write."""

import asyncio

import pytest

from tests.controller.sharded import LEASES, NAMESPACES, Fleet, running_fleet, with_shards

pytestmark = pytest.mark.looptime

PERIOD = 15.0
LEASE_DURATION = 15.0


def now() -> float:
    return asyncio.get_running_loop().time()


async def settled(fleet: Fleet, *shares: int) -> None:
    """Wait until the running processes have these numbers of shards."""
    async with asyncio.timeout(60):
        while sorted(fleet.held(*fleet.harness.processes)) != sorted(shares):  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.5)


async def test_shards_are_divided_evenly_and_every_autoscaler_is_controlled_once():
    async with running_fleet() as fleet:
        for identity in ("one", "two", "three", "four"):
            fleet.start(identity)
        await settled(fleet, 2, 2, 2, 2)
        await asyncio.sleep(20)
        controlled = [key for each in fleet.decisions.values() for key in each.controlled]
        assert sorted(controlled) == sorted(f"{namespace}/web" for namespace in NAMESPACES)
        for process in fleet.harness.processes:
            assert process._cluster is not None
            stored = process._cluster.autoscalers.keys()
            assert set(stored) == fleet.decisions[process.identity].controlled
            assert all(len(one.keys()) == len(stored) for one in process._cluster.targets.informers)


async def test_join_and_leave_under_load_pause_no_autoscaler_for_longer_than_seconds():
    async with running_fleet() as fleet:
        fleet.start("one")
        await settled(fleet, 8)
        await asyncio.sleep(20)
        started = now()
        two = fleet.start("two")
        await settled(fleet, 4, 4)
        await asyncio.sleep(20)
        await fleet.harness.stop(two)
        await settled(fleet, 8, 0)
        await asyncio.sleep(20)
        assert fleet.longest_pause(started, "one", "two") < PERIOD + 5


async def test_autoscalers_of_a_dead_process_are_reconciled_within_the_lease_duration_and_five_seconds():
    async with running_fleet() as fleet:
        fleet.start("one")
        fleet.start("two")
        await settled(fleet, 4, 4)
        await asyncio.sleep(20)
        died = now()
        fleet.partitioned.add("one")
        await asyncio.sleep(LEASE_DURATION + 5)
        taken = fleet.decisions["two"].times
        assert all(times[-1] > died for times in (taken[f"{namespace}/web"] for namespace in NAMESPACES))
        assert fleet.held(*fleet.harness.processes) == [0, 8]
        fleet.partitioned.clear()
        await settled(fleet, 4, 4)


async def test_window_continues_with_the_next_holder_of_a_shard():
    async with running_fleet() as fleet:
        one = fleet.start("one")
        await settled(fleet, 8)
        for namespace in NAMESPACES:
            fleet.harness.external_metrics.set(namespace, 40)
        await asyncio.sleep(30)
        highest = {namespace: fleet.replicas(namespace) for namespace in NAMESPACES}
        fleet.start("two")
        await settled(fleet, 4, 4)
        await fleet.harness.stop(one)
        await asyncio.sleep(30)
        # No autoscaler scales below a recommendation of the last five minutes.
        assert all(fleet.replicas(namespace) >= highest[namespace] for namespace in NAMESPACES)


@pytest.mark.parametrize(("first", "second"), [(4, 8), (8, 4), (1, 4), (4, 1)])
async def test_processes_with_another_number_of_shards_wait_until_the_others_have_ended(first, second):
    async with running_fleet() as fleet:
        old = fleet.start("old", with_shards(first))
        await settled(fleet, first)
        new = fleet.start("new", with_shards(second))
        await asyncio.sleep(40)
        assert fleet.held(old, new) == [first, 0]
        await fleet.harness.stop(old)
        stopped = now()
        await settled(fleet, second, 0)
        # A process without shards tries to acquire the Lease every 2 to 4.4 seconds.
        assert now() - stopped < LEASE_DURATION + 8


async def test_member_leases_of_stopped_processes_are_deleted():
    async with running_fleet() as fleet:
        fleet.start("one")
        two = fleet.start("two")
        await settled(fleet, 4, 4)
        await fleet.harness.stop(two)
        await settled(fleet, 8, 0)
        members = [
            one["metadata"]["name"] for one in fleet.cluster.list(LEASES) if "-member-" in one["metadata"]["name"]
        ]
        assert len(members) == 1
