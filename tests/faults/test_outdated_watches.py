"""Watched objects that become out of date: stalled watches, unreadable autoscalers, forged objects."""

import time
from typing import Final

import pytest

from autoscaler.kube.freshness import MAX_AGE
from tests.faults.proxy import Fault
from tests.faults.rig import FaultRig, wait_for_log

pytestmark = pytest.mark.faults

MAX_SECONDS: Final = MAX_AGE.total_seconds()
WATCHES: Final = "watch=1"


def test_stalled_watch_does_not_hide_a_pause_for_more_than_90_seconds(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    with faulty.proxy.injected(Fault(WATCHES, stall=True)):
        faulty.patch("podautoscaler", "web", {"spec": {"mode": "Paused"}})
        time.sleep(MAX_SECONDS)
        faulty.set_and_wait(queue=60)
        time.sleep(10)
        assert faulty.replicas() == 8


def test_deleted_autoscaler_is_not_scaled_after_90_seconds_of_refused_watches(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    with faulty.proxy.injected(Fault(WATCHES, status=403)), faulty.proxy.injected(Fault(WATCHES, stall=True)):
        faulty.delete("podautoscaler")
        time.sleep(MAX_SECONDS)
        faulty.set_and_wait(queue=60)
        time.sleep(10)
        assert faulty.replicas() == 8


def test_nothing_is_scaled_while_autoscalers_cannot_be_read(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    reads = Fault("/podautoscalers?", "GET", status=503, headers={"Retry-After": "3600"})
    with faulty.proxy.injected(reads), faulty.proxy.injected(Fault(WATCHES, stall=True)):
        time.sleep(MAX_SECONDS + 5)
        faulty.set_and_wait(queue=60)
        faulty.wait_for_condition("AbleToScale", "False", "FailedUpdateScale")
        assert faulty.replicas() == 8
    faulty.wait_for_replicas(12, within=60)


def test_forged_lists_and_events_do_not_end_the_process(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    deep = b'{"a":' * 3000 + b"1" + b"}" * 3000
    forged = Fault(
        "podautoscalers", "GET", forge=lambda chunk: chunk.replace(b'"maxReplicas":20', b'"maxReplicas":' + deep)
    )
    with faulty.proxy.injected(forged):
        faulty.patch("podautoscaler", "web", {"metadata": {"labels": {"changed": "once"}}})
        wait_for_log(faulty, "invalid object skipped")
    faulty.patch("podautoscaler", "web", {"metadata": {"labels": {"changed": "twice"}}})
    faulty.set(queue=60)
    faulty.wait_for_replicas(12, within=60)
