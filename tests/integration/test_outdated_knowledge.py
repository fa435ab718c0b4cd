"""A process with a faulty connection to the API server: stalled watches, latency, forged objects, a restored etcd."""

import shutil
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.control_plane.cluster import LOOPBACK, ControlPlane
from tests.faults.proxy import Fault, FaultProxy, serving_tls
from tests.integration.scaling import Rig, autoscaler, deployment, rig
from tests.integration.service import until

pytestmark = [pytest.mark.apiserver, pytest.mark.slow]

MAX_AGE = 90
WATCHES = "watch=1"


@contextmanager
def proxied(plane: ControlPlane, namespace: str) -> Iterator[tuple[Rig, FaultProxy]]:
    """Run a rig whose processes reach the API server through the proxy; kubectl does not."""
    certificate, key = plane.authority.server(LOOPBACK).save(plane.folder, f"proxy-{namespace}")
    upstream = ssl.create_default_context(cafile=plane.folder / "ca.crt")
    proxy = FaultProxy(plane.server, upstream, serving_tls(certificate, key))
    with proxy.serving(), rig(plane, namespace, server=proxy.url) as running:
        yield running, proxy


@pytest.fixture
def faulty(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[tuple[Rig, FaultProxy]]:
    with proxied(plane, f"faulty-{abs(hash(request.node.name)) % 10000}") as (running, proxy):
        running.apply(deployment("web", 8), autoscaler("web"))
        running.wait_for_condition("AbleToScale", "True", "ReadyForNewScale")
        yield running, proxy


def test_stalled_watch_does_not_hide_a_pause_for_more_than_90_seconds(faulty):
    running, proxy = faulty
    with proxy.injected(Fault(WATCHES, stall=True)):
        running.patch("podautoscaler", "web", {"spec": {"mode": "Paused"}})
        time.sleep(MAX_AGE)
        running.set_and_wait(queue=60)
        time.sleep(10)
        assert running.replicas() == 8


def test_nothing_is_scaled_while_autoscalers_cannot_be_read(faulty):
    running, proxy = faulty
    reads = Fault("/podautoscalers?", "GET", status=503, headers={"Retry-After": "3600"})
    with proxy.injected(reads), proxy.injected(Fault(WATCHES, stall=True)):
        time.sleep(MAX_AGE + 5)
        running.set_and_wait(queue=60)
        running.wait_for_condition("AbleToScale", "False", "FailedUpdateScale")
        assert running.replicas() == 8
    running.wait_for_replicas(12, within=60)


def test_lease_is_acquired_with_a_latency_of_three_seconds(plane):
    with proxied(plane, "latency") as (running, proxy), proxy.injected(Fault("/leases", delay=3.0)):
        running.apply(deployment("web", 8), autoscaler("web"))
        running.set(queue=60)
        running.wait_for_replicas(12, within=90)
        time.sleep(20)
        assert "leadership lost" not in running.programs[0].log.read_text()


def test_forged_lists_and_events_do_not_end_the_process(faulty):
    running, proxy = faulty
    deep = b'{"a":' * 3000 + b"1" + b"}" * 3000
    forged = Fault(
        "podautoscalers", "GET", forge=lambda chunk: chunk.replace(b'"maxReplicas":20', b'"maxReplicas":' + deep)
    )
    with proxy.injected(forged):
        running.patch("podautoscaler", "web", {"metadata": {"labels": {"changed": "once"}}})
        until(lambda: "invalid object skipped" in running.programs[0].log.read_text(), "it is reported", within=60)
    running.patch("podautoscaler", "web", {"metadata": {"labels": {"changed": "twice"}}})
    running.set(queue=60)
    running.wait_for_replicas(12, within=60)
    assert "Traceback" not in running.programs[0].log.read_text()


def test_etcd_restored_from_a_backup_is_noticed(faulty):
    running, _ = faulty
    plane, data = running.plane, running.plane.folder / "etcd"
    with stopped(plane):
        shutil.copytree(data, data.with_name("etcd-backup"))
    running.wait_for_condition("AbleToScale", "True", "ReadyForNewScale", within=60)
    for turn in range(60):  # resourceVersions advance beyond those after the restore
        running.patch("podautoscaler", "web", {"metadata": {"labels": {"turn": str(turn)}}})
    with stopped(plane):
        shutil.rmtree(data)
        data.with_name("etcd-backup").rename(data)
    running.patch("podautoscaler", "web", {"spec": {"mode": "Paused"}})
    time.sleep(MAX_AGE)
    running.set_and_wait(queue=60)
    time.sleep(10)
    assert running.replicas() == 8
    running.patch("podautoscaler", "web", {"spec": {"mode": None}})
    running.wait_for_replicas(12, within=90)


@contextmanager
def stopped(plane: ControlPlane) -> Iterator[None]:
    """Stop the control plane while the block runs."""
    programs = (plane.etcd, plane.apiserver, plane.controller_manager)
    for program in reversed(programs):
        program.stop()
    try:
        yield
    finally:
        for program in programs:
            program.start()
