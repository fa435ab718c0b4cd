"""A HorizontalPodAutoscaler of kube-controller-manager scales by a metric of Steadyscale."""

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


def create(running: Service, *objects: dict[str, Any]) -> None:
    listing = {"apiVersion": "v1", "kind": "List", "items": objects}
    running.plane.kubectl("apply", "--filename=-", stdin=json.dumps(listing))


def test_hpa_scales_by_the_metric(running: Service) -> None:
    create(running, deployment("workers"), autoscaler("workers", "queue-depth"))
    # the metric is 30, and the target is 10 per replica
    until(lambda: running.plane.get("deployment", "workers")["spec"]["replicas"] == 3, "three workers")
    assert condition(running.plane.get("hpa", "workers"), "ScalingActive") == "True"


def test_unknown_metric_keeps_the_replicas_and_is_named_in_the_condition(running: Service) -> None:
    create(running, deployment("lost"), autoscaler("lost", "queue-dept"))

    def message() -> str:
        conditions = running.plane.get("hpa", "lost").get("status", {}).get("conditions") or ()
        return next((one["message"] for one in conditions if one["reason"] == "FailedGetExternalMetric"), "")

    until(lambda: bool(message()), "the failure is in the conditions")
    assert "queue-depth" in message()  # the most similar name
    assert running.plane.get("deployment", "lost")["spec"]["replicas"] == 1
