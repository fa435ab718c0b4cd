"""Objects and permissions that disappear and come back while the controller runs."""

import time
from functools import partial

import pytest

from tests.faults.api import Refused
from tests.faults.rig import FaultRig, wait_for_log
from tests.integration.scaling import autoscaler, deployment, external
from tests.integration.service import until

pytestmark = pytest.mark.faults


def test_revoked_permissions_stop_scaling_until_they_are_restored(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    faulty.revoke()
    faulty.set(queue=60)
    wait_for_log(faulty, "forbidden")
    time.sleep(10)
    assert faulty.replicas() == 8
    requests = len(faulty.proxy.requests)
    time.sleep(10)
    assert len(faulty.proxy.requests) - requests < 200  # retries have a backoff
    faulty.revoke("external-metrics")
    faulty.grant()
    faulty.wait_for_replicas(12, within=90)


def test_recreated_target_and_autoscaler_are_scaled_again(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    for _ in range(3):  # the objects have new uids each time
        faulty.delete("podautoscaler")
        faulty.delete("deployment")
        faulty.wait_until_ready()
    faulty.delete("deployment")
    faulty.wait_for_condition("AbleToScale", "False", "FailedGetScale", within=60)
    faulty.set(queue=60)
    faulty.apply(deployment("web", 8))
    faulty.wait_for_replicas(12, within=60)


def test_namespace_deleted_during_a_rescale_does_not_affect_the_process(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    namespace = f"/api/v1/namespaces/{faulty.namespace}"
    faulty.set(queue=60)
    faulty.api.delete(namespace)

    def is_deleted() -> bool:
        try:
            faulty.api.get(namespace)
        except Refused as error:
            return error.status == 404
        return False

    until(is_deleted, "the namespace is deleted", within=120)
    requests = len(faulty.proxy.requests)
    time.sleep(5)
    assert len(faulty.proxy.requests) - requests < 50  # nothing is retried for deleted objects
    faulty.create_namespace()
    faulty.apply(deployment("web", 8), autoscaler("web"))
    faulty.wait_for_replicas(12, within=60)


def test_two_autoscalers_of_one_target_do_not_scale_it(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    faulty.apply(autoscaler("other", external("queue", 10), target=reference))
    faulty.wait_for_condition("AbleToScale", "False", "AmbiguousTarget", within=60)
    faulty.set_and_wait(queue=60)
    time.sleep(5)
    assert faulty.replicas() == 8
    faulty.delete("podautoscaler", "other")
    faulty.wait_for_replicas(12, within=60)


def test_unreadable_configuration_file_leaves_the_previous_one_in_use(faulty: FaultRig) -> None:
    faulty.wait_until_ready()
    complete = faulty.config.read_text()
    for content in (complete[: len(complete) // 2], "\0" * 4096):
        problems = faulty.log.count("config")
        faulty.config.write_text(content)
        until(partial(_has_more, faulty, problems), "the problem is logged", within=60)
        time.sleep(3)
        assert faulty.condition("ScalingActive") == ("True", "ValidMetricFound")
    faulty.config.write_text("")  # as a full disk leaves it: a valid configuration without rules
    faulty.wait_for_condition("ScalingActive", "False", "FailedGetExternalMetric", within=60)
    assert faulty.replicas() == 8
    faulty.set(queue=60)
    faulty.wait_for_replicas(12, within=60)


def _has_more(rig: FaultRig, problems: int) -> bool:
    return rig.log.count("config") > problems
