"""Faults of the whole control plane, one after the other: etcd and the API server are killed, full, or restored."""

import json
import shutil
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from autoscaler.kube.freshness import MAX_AGE
from tests.control_plane.cluster import ControlPlane
from tests.control_plane.process import Program
from tests.faults.rig import FaultRig, fault_rig, install_manifests, wait_for_log
from tests.integration.scaling import autoscaler
from tests.integration.service import until

pytestmark = [pytest.mark.faults, pytest.mark.slow]


@pytest.fixture
def running(installed: ControlPlane, namespace: str) -> Iterator[FaultRig]:
    with fault_rig(installed, namespace) as rig:
        rig.wait_until_ready()
        yield rig


@contextmanager
def stopped(*programs: Program) -> Iterator[None]:
    """Stop programs while the block runs."""
    for program in reversed(programs):
        program.stop()
    try:
        yield
    finally:
        for program in programs:
            program.start()


def test_killed_api_server_delays_scaling_until_it_is_back(running: FaultRig) -> None:
    running.plane.apiserver.kill()
    try:
        running.set_and_wait(queue=60)
        wait_for_log(running, "leadership lost", within=60)
    finally:
        running.plane.apiserver.start()
    running.wait_for_replicas(12, within=90)
    assert running.events().count("SuccessfulRescale") == 1


def test_killed_etcd_delays_scaling_until_it_is_back(running: FaultRig) -> None:
    running.plane.etcd.kill()
    try:
        running.set_and_wait(queue=60)
        wait_for_log(running, "leadership lost", within=90)
    finally:
        running.plane.etcd.start()
    until(running.plane.apiserver.is_ready, "the API server is ready", within=120)
    running.wait_for_replicas(12, within=120)


def test_full_etcd_stops_scaling_until_it_has_space(running: FaultRig) -> None:
    member = _etcd(running.plane, "/v3/cluster/member/list")["members"][0]["ID"]
    alarm = {"memberID": member, "alarm": "NOSPACE"}
    _etcd(running.plane, "/v3/maintenance/alarm", {**alarm, "action": "ACTIVATE"})
    try:
        running.set_and_wait(queue=60)
        wait_for_log(running, "leadership lost", within=60)  # the Lease cannot be written either
        assert running.replicas() == 8
    finally:
        _etcd(running.plane, "/v3/maintenance/alarm", {**alarm, "action": "DEACTIVATE"})
    running.wait_for_replicas(12, within=90)


def test_etcd_restored_from_a_backup_is_noticed_within_90_seconds(running: FaultRig) -> None:
    plane, data = running.plane, running.plane.folder / "etcd"
    programs = (plane.etcd, plane.apiserver, plane.controller_manager)
    with stopped(*programs):
        shutil.copytree(data, data.with_name("etcd-backup"))
    running.wait_for_condition("AbleToScale", "True", "ReadyForNewScale", within=60)
    for turn in range(60):  # resourceVersions advance beyond those after the restore
        running.patch("podautoscaler", "web", {"metadata": {"labels": {"turn": str(turn)}}})
    with stopped(*programs):
        shutil.rmtree(data)
        data.with_name("etcd-backup").rename(data)
    running.patch("podautoscaler", "web", {"spec": {"mode": "Paused"}})
    time.sleep(MAX_AGE.total_seconds())
    running.set_and_wait(queue=60)
    time.sleep(10)
    assert running.replicas() == 8
    running.patch("podautoscaler", "web", {"spec": {"mode": None}})
    running.wait_for_replicas(12, within=90)


def test_recreated_crd_is_watched_again(running: FaultRig) -> None:
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podautoscalers.steadyscale.dev"
    running.api.delete(definition)  # with all autoscalers
    until(lambda: "podautoscalers" not in _resources(running), "the CRD is deleted", within=60)
    running.set_and_wait(queue=60)
    time.sleep(5)
    assert running.replicas() == 8
    install_manifests(running.plane)
    running.apply(autoscaler("web"))
    running.wait_for_replicas(12, within=120)


def _resources(rig: FaultRig) -> list[str]:
    found = rig.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    return [each["spec"]["names"]["plural"] for each in found]


def _etcd(plane: ControlPlane, path: str, body: dict[str, Any] | None = None) -> Any:
    url = plane.etcd_url + path
    with urllib.request.urlopen(url, json.dumps(body or {}).encode(), timeout=10) as response:  # noqa: S310
        return json.loads(response.read())
