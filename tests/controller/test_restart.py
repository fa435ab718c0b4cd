"""A restart, or another leader, neither forgets nor waits anew."""

import asyncio

import pytest
from msgspec.structs import replace

from tests.controller.harness import ALONE, queue

pytestmark = pytest.mark.looptime

ELECTED = replace(ALONE, leader_elect=True)


async def restarted(stage, control, after=0):
    await stage.stop(control)
    await asyncio.sleep(after)
    return stage.start()


async def test_a_restart_does_not_hold_a_workload_up_for_another_window(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=8)
    stage.autoscaler()
    control = stage.start()
    await asyncio.sleep(60)
    stage.numbers.set("queue", 10)
    await asyncio.sleep(200)
    await restarted(stage, control, after=5)
    await asyncio.sleep(80)
    assert stage.replicas() == 8
    await asyncio.sleep(40)
    assert stage.replicas() == 2


async def test_nor_does_it_forget_the_window(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=8)
    stage.autoscaler()
    control = stage.start()
    await asyncio.sleep(60)
    stage.numbers.set("queue", 10)
    await asyncio.sleep(100)
    await restarted(stage, control)
    await asyncio.sleep(150)
    assert stage.replicas() == 8


async def test_what_could_not_be_said_is_said_in_the_last_moment(stage):
    slowly = {"type": "Pods", "value": 2, "periodSeconds": 120}
    stage.numbers.set("queue", 20)
    stage.deployment(replicas=4)
    stage.autoscaler(behavior={"scaleUp": {"policies": [slowly]}})
    control = stage.start()
    await asyncio.sleep(20)
    stage.cluster.refuse_next(503, times=2, verb="patch", within="/status")
    stage.numbers.set("queue", 40)
    await asyncio.sleep(0.2)
    assert stage.replicas() == 6
    assert "up=2@" not in stage.status()["memory"]
    await stage.stop(control)
    assert "up=2@" in stage.status()["memory"]
    stage.start()
    await asyncio.sleep(60)
    assert stage.replicas() == 6


async def test_who_is_stopped_between_two_writes_makes_the_second(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=8)
    stage.autoscaler()
    control = stage.start()
    await asyncio.sleep(20)
    stage.cluster.asked.clear()
    stage.numbers.set("queue", 60)
    while not stage.asked("update", "/scale"):  # noqa: ASYNC110 - the cluster is not to know of this test
        await asyncio.sleep(0)
    await stage.stop(control)
    assert stage.replicas() == 12
    assert stage.status()["desiredReplicas"] == 12
    assert stage.status()["lastScaleTime"]


async def test_it_does_not_forget_a_policy(stage):
    slowly = {"type": "Pods", "value": 2, "periodSeconds": 120}
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=4)
    stage.autoscaler(behavior={"scaleUp": {"policies": [slowly]}})
    control = stage.start()
    await asyncio.sleep(10)
    assert stage.replicas() == 6
    await restarted(stage, control)
    await asyncio.sleep(100)
    assert stage.replicas() == 6
    await asyncio.sleep(40)
    assert stage.replicas() == 8


async def test_it_carries_on_with_the_clock_of_an_outage(stage):
    stage.numbers.set("queue", "connection refused")
    stage.deployment(replicas=4)
    stage.autoscaler("web", queue(fallback={"replicas": 10}))
    control = stage.start()
    await asyncio.sleep(170)
    await restarted(stage, control)
    await asyncio.sleep(5)
    assert stage.replicas() == 4
    await asyncio.sleep(6)
    assert stage.replicas() == 8
    assert stage.condition("ExternalMetricFallbackActive") == ("True", "FallbackActive")


async def test_it_still_knows_who_scaled_to_zero(stage):
    stage.numbers.set("queue", 0)
    stage.deployment(replicas=4)
    stage.autoscaler(minReplicas=0, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    control = stage.start()
    await asyncio.sleep(20)
    assert stage.replicas() == 0
    await restarted(stage, control)
    stage.numbers.set("queue", 20)
    await asyncio.sleep(1)
    assert stage.replicas() == 4


async def test_what_is_kept_is_not_written_in_every_pass(stage):
    stage.numbers.set("queue", 10)
    stage.deployment(replicas=8)
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(30)
    stage.cluster.asked.clear()
    await asyncio.sleep(200)
    assert stage.asked() == []


# --- leadership ------------------------------------------------------------------------------------------------------


async def test_of_two_processes_one_controls(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=5)
    stage.autoscaler()
    first, second = stage.start(ELECTED, "one"), stage.start(ELECTED, "two")
    await asyncio.sleep(20)
    assert stage.replicas() == 8
    assert [first.is_leading, second.is_leading].count(True) == 1
    assert stage.events() == ["SuccessfulRescale"]


async def test_who_is_told_to_stop_hands_over_in_less_than_two_seconds(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=8)
    stage.autoscaler()
    first = stage.start(ELECTED, "one")
    await asyncio.sleep(5)
    second = stage.start(ELECTED, "two")
    await asyncio.sleep(5)
    began = asyncio.get_running_loop().time()
    await stage.stop(first)
    while not second.is_leading:  # noqa: ASYNC110 - there is nobody to tell us
        await asyncio.sleep(0.05)
    assert asyncio.get_running_loop().time() - began < 2
    stage.numbers.set("queue", 60)
    await asyncio.sleep(1)
    assert stage.replicas() == 12


async def test_who_cannot_renew_stops_writing_before_another_may_begin(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=8)
    stage.autoscaler()
    first = stage.start(ELECTED, "one")
    await asyncio.sleep(20)
    stage.cluster.refuse_next(503, times=1000, within="/leases/")
    await asyncio.sleep(13)
    assert not first.is_leading
    stage.cluster.asked.clear()
    stage.numbers.set("queue", 60)
    await asyncio.sleep(30)
    assert stage.replicas() == 8
    assert stage.asked("update", "/scale") == []


async def test_a_leader_that_died_is_succeeded_without_scaling_twice(stage):
    stage.numbers.set("queue", 100)
    stage.deployment(replicas=3)
    stage.autoscaler()
    first = stage.start(ELECTED, "one")
    await asyncio.sleep(5)
    assert stage.replicas() == 6
    second = stage.start(ELECTED, "two")
    await asyncio.sleep(3.3)
    stage.cluster.refuse_next(500, verb="update", within="/leases/")  # so that it cannot say goodbye
    await stage.stop(first)
    await asyncio.sleep(5)
    assert not second.is_leading
    assert stage.replicas() == 6
    await asyncio.sleep(20)
    assert second.is_leading
    assert stage.replicas() == 12


async def test_a_new_leader_gives_the_last_rescale_time_to_settle(stage):
    stage.numbers.set("queue", 100)
    stage.deployment(replicas=3)
    stage.autoscaler()
    control = stage.start()
    await asyncio.sleep(5)
    await restarted(stage, control)
    await asyncio.sleep(8)
    assert stage.replicas() == 6
    await asyncio.sleep(3)
    assert stage.replicas() == 12
