"""The rights in manifests/ are those that the controller uses: every one granted is used, every one used is granted."""

import asyncio
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from tests.controller.harness import ALONE, AUTOSCALERS, queue
from tests.controller.widgets import WIDGETS

pytestmark = pytest.mark.looptime

RIGHTS = Path(__file__).parents[2] / "manifests" / "base" / "autoscaler-rbac.yaml"
METRICS = {"metrics.k8s.io": "list", "custom.metrics.k8s.io": "get", "external.metrics.k8s.io": "list"}


def granted():
    documents = yaml.safe_load_all(RIGHTS.read_text())
    ours = [one for one in documents if one["metadata"]["name"] in ("steadyscale:autoscaler", "steadyscale:leadership")]
    rules = [rule for one in ours for rule in one.get("rules") or ()]
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(cluster):
    """Say what was asked for, in the words of a role; discovery is everybody's right."""
    found = set()
    for one in cluster.asked:
        words = one.path.strip("/").split("/")
        group, rest = (words[1], words[3:]) if words[0] == "apis" else ("", words[2:])
        if not rest:
            continue
        if rest[0] == "namespaces" and len(rest) > 2:
            rest = rest[2:]
        if group in METRICS:
            found.add((group, "pods" if group == "metrics.k8s.io" else "*", METRICS[group]))
        elif len(rest) == 3:
            scale = rest[2] == "scale"
            found.add(("*" if scale else group, "*/scale" if scale else f"{rest[0]}/{rest[2]}", one.verb))
        elif group != "example.com":
            found.add((group, rest[0], one.verb))
    return found


async def test_every_right_is_used_and_every_use_is_a_right(stage):
    stage.cluster.define(WIDGETS)
    stage.cluster.metrics.external["shop", "queue"] = ["60"]
    stage.cluster.metrics.usage["shop/web-00000"] = {"cpu": "90m"}
    stage.cluster.metrics.of_pods["rps", "shop/web-00000"] = "10"
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "50m"}}}
    rps = {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "5"}}}
    stage.deployment(replicas=3)
    stage.autoscaler("web", queue(), cpu, rps)
    for plural, kind in (("statefulsets", "StatefulSet"), ("replicasets", "ReplicaSet")):
        labels = {"app": plural}
        spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}
        stage.cluster.create(f"/apis/apps/v1/namespaces/shop/{plural}", {"metadata": {"name": plural}, "spec": spec})
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": plural}
        stage.autoscaler(plural, scaleTargetRef=reference)
    stage.autoscaler("widget", scaleTargetRef={"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"})
    stage.cluster.refuse_next(409, verb="update", within="/scale")
    stage.start(replace(ALONE, leader_elect=True, external_metrics="cluster"))
    await asyncio.sleep(120)
    assert used(stage.cluster) == granted()
    assert stage.cluster.get(f"{AUTOSCALERS}/web") is not None
