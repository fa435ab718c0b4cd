"""Responses of the API server that are lost, late, refused, truncated, forged, repeated or reordered."""

import random
import time
from functools import partial
from typing import Final

import pytest

from tests.faults.proxy import Fault
from tests.faults.rig import FaultRig, wait_for_log
from tests.integration.service import until

pytestmark = pytest.mark.faults

ALL: Final = "/"
WATCHES: Final = "watch=1"
SCALES: Final = "/scale"
STATUSES: Final = "/status"
WRITES: Final = ((SCALES, "PUT"), (STATUSES, "PUT"))


def change(rig: FaultRig, label: str) -> None:
    """Change the autoscaler without a new generation, so that the watch has an event."""
    rig.patch("podautoscaler", "web", {"metadata": {"labels": {"changed": label}}})


def test_half_of_all_requests_failing_at_random_delays_scaling_at_most(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    chances = random.Random(7)  # noqa: S311 - the same faults in each run
    unavailable = Fault(ALL, status=503, chance=0.3, chances=chances)
    dropped = Fault(ALL, drop=True, chance=0.2, chances=chances)
    lost = Fault(ALL, drop_answer=True, chance=0.1, chances=chances)
    with faulty.proxy.injected(unavailable), faulty.proxy.injected(dropped), faulty.proxy.injected(lost):
        faulty.set(queue=60)
        faulty.wait_for_replicas(12, within=120)
        faulty.set(queue=20)
        faulty.wait_for_replicas(4, within=120)


def test_429_for_every_second_write_delays_scaling_by_seconds(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    headers = {"Retry-After": "1"}
    limits = [Fault(path, method, status=429, headers=headers, every=2) for path, method in WRITES]
    faulty.proxy.faults += limits
    for queue, replicas in ((60, 12), (30, 6), (50, 10)):
        faulty.set(queue=queue)
        faulty.wait_for_replicas(replicas, within=45)
    assert sum(limit.count for limit in limits) >= 6


def test_conflicts_of_all_scale_writes_end_in_one_rescale(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    with faulty.proxy.injected(Fault(SCALES, "PUT", status=409)) as conflicts:
        faulty.set(queue=60)
        faulty.wait_for_condition("AbleToScale", "False", "FailedUpdateScale", within=60)
        started, before = time.monotonic(), conflicts.count
        time.sleep(10)
        rate = (conflicts.count - before) / (time.monotonic() - started)
        assert rate <= 6  # five attempts per sync period of one second
    faulty.wait_for_replicas(12, within=30)
    assert faulty.events().count("SuccessfulRescale") == 1


def test_watches_that_always_expire_are_replaced_by_lists(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    with faulty.proxy.injected(Fault(WATCHES, status=410)):
        time.sleep(5)
        faulty.patch("podautoscaler", "web", {"spec": {"minReplicas": 15}})
        faulty.wait_for_replicas(15, within=90)


def test_truncated_lists_are_not_taken_for_deleted_objects(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    truncated = Fault("/podautoscalers?", "GET", truncate=200)
    with faulty.proxy.injected(truncated), faulty.proxy.injected(Fault(WATCHES, drop=True)):
        until(lambda: truncated.count >= 3, "three truncated responses", within=120)
        faulty.set(queue=60)
        faulty.wait_for_replicas(12, within=30)  # known for less than 90 seconds
    change(faulty, "afterwards")
    faulty.set(queue=30)
    faulty.wait_for_replicas(6, within=90)


def test_truncated_watch_events_are_read_again(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    with faulty.proxy.injected(Fault(WATCHES, truncate=300)):
        for turn in range(3):
            change(faulty, str(turn))
            time.sleep(1)
        faulty.patch("podautoscaler", "web", {"spec": {"minReplicas": 15}})
        faulty.wait_for_replicas(15, within=90)


def test_swapped_watch_events_do_not_bring_back_an_older_spec(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    with faulty.proxy.injected(Fault("/podautoscalers?", swap=True)):
        time.sleep(50)  # until the open watch has ended
        faulty.patch("podautoscaler", "web", {"spec": {"minReplicas": 15}})
        faulty.patch("podautoscaler", "web", {"spec": {"minReplicas": 10}})
        faulty.wait_for_replicas(10, within=60)
        time.sleep(5)
        assert faulty.replicas() == 10


def test_repeated_watch_events_change_nothing(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    with faulty.proxy.injected(Fault(WATCHES, forge=lambda chunk: chunk * 3 if chunk.endswith(b"}\n") else chunk)):
        for turn in range(3):
            change(faulty, str(turn))
        faulty.set(queue=60)
        faulty.wait_for_replicas(12, within=60)
        time.sleep(5)
    assert faulty.events().count("SuccessfulRescale") == 1


def test_random_bytes_in_all_responses_do_not_end_the_process(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    chances = random.Random(3)  # noqa: S311 - the same faults in each run
    garbage = Fault("/podautoscalers", forge=lambda chunk: chances.randbytes(len(chunk)))
    targets = Fault("/deployments", forge=lambda chunk: chances.randbytes(len(chunk)), chance=0.5)
    with faulty.proxy.injected(garbage), faulty.proxy.injected(targets):
        change(faulty, "once")
        time.sleep(30)
        assert faulty.replicas() == 8
    faulty.set(queue=60)
    faulty.wait_for_replicas(12, within=90)


def test_half_open_connections_to_the_api_server_are_replaced(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    with faulty.proxy.injected(Fault(ALL, stall=True)):
        wait_for_log(faulty, "leadership lost", within=60)
        faulty.set_and_wait(queue=60)
        before = faulty.proxy.writes()
        time.sleep(10)
        assert (faulty.replicas(), faulty.proxy.writes()) == (8, before)
    faulty.wait_for_replicas(12, within=90)


def test_every_response_three_seconds_late_delays_scaling_by_seconds(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    with faulty.proxy.injected(Fault(ALL, answer_delay=3.0)):
        time.sleep(10)
        faulty.set(queue=60)
        faulty.wait_for_replicas(12, within=30)
        faulty.set(queue=20)
        faulty.wait_for_replicas(4, within=30)
    assert "leadership lost" not in faulty.log


def test_rejected_token_stops_scaling_until_it_is_accepted(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    with faulty.proxy.injected(Fault(ALL, status=401)):
        wait_for_log(faulty, "leadership lost", within=60)
        faulty.set_and_wait(queue=60)
        assert faulty.replicas() == 8
    faulty.wait_for_replicas(12, within=90)


def test_redirects_are_not_followed(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    elsewhere = {"Location": f"{faulty.proxy.url}/elsewhere"}
    with faulty.proxy.injected(Fault("/podautoscalers", status=307, headers=elsewhere)):
        faulty.set(queue=60)
        faulty.wait_for_replicas(12, within=60)
        time.sleep(10)
    assert not [path for _, path in faulty.proxy.requests if "elsewhere" in path]


def test_forged_replicas_of_a_target_never_cause_replicas_outside_the_bounds(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    for turn, value in enumerate(("-5", "1" + 30 * "0", '"many"', "null", "1e308", "2147483648", "[]")):
        forge = partial(_replace, b'"replicas":8', f'"replicas":{value}'.encode())
        with faulty.proxy.injected(Fault("/deployments", "GET", forge=forge)):
            faulty.patch("deployment", "web", {"metadata": {"labels": {"changed": f"turn-{turn}"}}})
            time.sleep(3)
            assert 1 <= faulty.replicas() <= 20
    faulty.patch("deployment", "web", {"metadata": {"labels": {"changed": "at-last"}}})
    faulty.set(queue=60)
    faulty.wait_for_replicas(12, within=90)


def _replace(before: bytes, after: bytes, chunk: bytes) -> bytes:
    return chunk.replace(before, after)
