"""The Lease and its holder: frozen, replaced, deleted, forged, killed."""

import os
import signal
import time
from typing import Final

import pytest

from autoscaler.settings import ControllerOptions
from tests.faults.proxy import Fault
from tests.faults.rig import FaultRig, wait_for_log
from tests.integration.service import until

pytestmark = pytest.mark.faults

LEASE_SECONDS: Final = ControllerOptions().lease_duration.total_seconds()
RENEW_SECONDS: Final = ControllerOptions().renew_deadline.total_seconds()
SCALE: Final = "/deployments/web/scale"


def start_second(rig: FaultRig) -> str:
    """Start another process; return the identity of the leader."""
    leader = rig.holder()
    rig.start(name="two")
    until(
        lambda: "GET" in {method for method, path in rig.proxies[1].requests if "/leases/" in path},
        "it reads the Lease",
        within=60,
    )
    assert rig.holder() == leader
    return leader


def wait_for_another_leader(rig: FaultRig, leader: str, within: float = LEASE_SECONDS + 30) -> None:
    until(lambda: rig.holder() not in {"", leader}, "another process leads", within=within)


def test_leader_frozen_beyond_the_lease_writes_nothing_afterwards(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    leader = start_second(faulty)
    os.kill(faulty.programs[0].pid, signal.SIGSTOP)
    try:
        wait_for_another_leader(faulty, leader)
        faulty.set(queue=60)
        faulty.wait_for_replicas(12, within=60)
        before = faulty.proxy.writes()
    finally:
        os.kill(faulty.programs[0].pid, signal.SIGCONT)
    wait_for_log(faulty, "leadership lost")
    time.sleep(5)
    assert faulty.proxy.writes() == before
    assert faulty.replicas() == 12
    assert faulty.events().count("SuccessfulRescale") == 1


def test_leader_frozen_during_a_write_does_not_repeat_it_after_a_conflict(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    leader = start_second(faulty)
    with faulty.proxy.injected(Fault(SCALE, "PUT", delay=3, status=409)) as conflict:
        faulty.set(queue=60)
        until(lambda: conflict.count > 0, "the leader writes the scale", within=60)
        os.kill(faulty.programs[0].pid, signal.SIGSTOP)  # it receives the response when it continues
    try:
        wait_for_another_leader(faulty, leader)
        faulty.wait_for_replicas(12, within=60)
        faulty.set(queue=30)
        faulty.wait_for_replicas(6, within=60)
        before = faulty.proxy.writes()
    finally:
        os.kill(faulty.programs[0].pid, signal.SIGCONT)
    wait_for_log(faulty, "leadership lost")
    time.sleep(5)
    assert faulty.proxy.writes() == before
    assert faulty.replicas() == 6


def test_leader_whose_lease_another_client_takes_stops_writing_within_the_renew_deadline(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    other_client = {"holderIdentity": "another-client", "leaseDurationSeconds": 30}
    faulty.api.patch(faulty.lease, {"spec": other_client})
    time.sleep(RENEW_SECONDS)
    before = faulty.proxy.writes()
    faulty.set_and_wait(queue=60)
    time.sleep(5)
    assert (faulty.replicas(), faulty.proxy.writes()) == (8, before)
    faulty.wait_for_replicas(12, within=90)  # the other client does not renew


def test_deleted_lease_is_created_again_by_one_leader(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    start_second(faulty)
    for _ in range(3):
        faulty.api.delete(faulty.lease)
        until(lambda: bool(faulty.holder()), "the Lease exists", within=60)
    faulty.set(queue=60)
    faulty.wait_for_replicas(12, within=90)
    time.sleep(5)
    assert faulty.replicas() == 12
    assert faulty.events().count("SuccessfulRescale") == 1


def test_lease_with_a_renew_time_in_the_year_9999_expires_after_its_duration(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    forged = {"holderIdentity": "gone", "renewTime": "9999-12-31T23:59:59.000000Z", "acquireTime": None}
    faulty.api.patch(faulty.lease, {"spec": forged})
    faulty.set(queue=60)
    wait_for_another_leader(faulty, "gone")
    faulty.wait_for_replicas(12, within=60)


def test_lease_that_conflicts_at_every_second_write_keeps_its_holder(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    with faulty.proxy.injected(Fault("/leases", "PUT", status=409, every=2)) as conflicts:
        until(lambda: conflicts.count >= 10, "ten renewals", within=90)
    faulty.set(queue=60)
    faulty.wait_for_replicas(12, within=30)
    assert "leadership lost" not in faulty.log


def test_lease_is_acquired_and_kept_with_a_latency_of_three_seconds(faulty: FaultRig) -> None:
    faulty.programs.pop().kill()
    faulty.start(name="two", faults=[Fault("/leases", delay=3.0)])
    faulty.wait_until_ready()
    faulty.set(queue=60)
    faulty.wait_for_replicas(12, within=60)
    time.sleep(2 * RENEW_SECONDS)
    assert "leadership lost" not in faulty.log
