"""A native HorizontalPodAutoscaler in kube-controller-manager reads our metric and scales by it."""

import json
from typing import Any

import pytest

from tests.integration.service import Service, condition, until

pytestmark = pytest.mark.apiserver


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "worker", "image": "worker"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def autoscaler(name: str, metric: str) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": "10"}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": 1,
        "maxReplicas": 9,
        "metrics": [{"type": "External", "external": {"metric": {"name": metric}, "target": target}}],
    }
    metadata = {"name": name}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def create(running: Service, *things: dict[str, Any]) -> None:
    listing = {"apiVersion": "v1", "kind": "List", "items": things}
    running.plane.kubectl("apply", "--filename=-", stdin=json.dumps(listing))


def test_it_scales_to_the_metric_over_the_target(running: Service) -> None:
    create(running, deployment("workers"), autoscaler("workers", "queue-depth"))
    # 20 + 10 waiting, 10 for each worker
    until(lambda: running.plane.get("deployment", "workers")["spec"]["replicas"] == 3, "three workers", within=60)
    assert condition(running.plane.get("hpa", "workers"), "ScalingActive") == "True"


def test_a_metric_that_does_not_exist_leaves_the_workload_alone_and_says_so_in_our_words(running: Service) -> None:
    create(running, deployment("lost"), autoscaler("lost", "queue-dept"))

    def complaint() -> str:
        conditions = running.plane.get("hpa", "lost").get("status", {}).get("conditions") or ()
        return next((one["message"] for one in conditions if one["reason"] == "FailedGetExternalMetric"), "")

    until(lambda: bool(complaint()), "the failure is in the status", within=60)
    assert "queue-depth" in complaint()  # the nearest name
    assert running.plane.get("deployment", "lost")["spec"]["replicas"] == 1
