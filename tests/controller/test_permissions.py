"""The RBAC roles in manifests/ grant exactly the permissions that the controller uses."""

import asyncio
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from autoscaler.settings import ControllerOptions
from tests.controller.harness import AUTOSCALERS, WITHOUT_LEADER_ELECTION, queue
from tests.controller.sharded import running_fleet
from tests.controller.widgets import WIDGETS

ROLES = Path(__file__).parents[2] / "manifests" / "base" / "autoscaler-rbac.yaml"
SHARDS_ROLE = Path(__file__).parents[2] / "manifests" / "components" / "shards" / "rbac.yaml"
METRICS = {"metrics.k8s.io": "list", "custom.metrics.k8s.io": "get", "external.metrics.k8s.io": "list"}


def granted():
    documents = yaml.safe_load_all(ROLES.read_text())
    names = ("steadyscale:autoscaler", "steadyscale:leader-election")
    roles = [role for role in documents if role["metadata"]["name"] in names]
    rules = [rule for role in roles for rule in role.get("rules") or ()]
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(cluster):
    """Return the permissions for all requests; discovery needs none."""
    found = set()
    for request in cluster.requests:
        segments = request.path.strip("/").split("/")
        group, rest = (segments[1], segments[3:]) if segments[0] == "apis" else ("", segments[2:])
        if not rest:
            continue
        if rest[0] == "namespaces" and len(rest) > 2:
            rest = rest[2:]
        if group in METRICS:
            found.add((group, "pods" if group == "metrics.k8s.io" else "*", METRICS[group]))
        elif len(rest) == 3:
            scale = rest[2] == "scale"
            found.add(("*" if scale else group, "*/scale" if scale else f"{rest[0]}/{rest[2]}", request.verb))
        elif group != "example.com":
            found.add((group, rest[0], request.verb))
    return found


@pytest.mark.looptime
async def test_roles_grant_exactly_the_permissions_used_by_the_controller(harness):
    harness.cluster.install_crd(WIDGETS)
    harness.cluster.metrics.external["shop", "queue"] = ["60"]
    harness.cluster.metrics.usage["shop/web-00000"] = {"cpu": "90m"}
    harness.cluster.metrics.pod_metrics["rps", "shop/web-00000"] = "10"
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "50m"}}}
    rps = {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "5"}}}
    harness.deployment(replicas=3)
    harness.autoscaler("web", queue(), cpu, rps)
    for plural, kind in (("statefulsets", "StatefulSet"), ("replicasets", "ReplicaSet")):
        labels = {"app": plural}
        spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}
        harness.cluster.create(f"/apis/apps/v1/namespaces/shop/{plural}", {"metadata": {"name": plural}, "spec": spec})
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": plural}
        harness.autoscaler(plural, scaleTargetRef=reference)
    harness.autoscaler("widget", scaleTargetRef={"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"})
    harness.cluster.faults.fail_next(409, verb="update", within="/scale")
    harness.start(replace(WITHOUT_LEADER_ELECTION, leader_elect=True, external_metrics="cluster"))
    await asyncio.sleep(120)
    assert used(harness.cluster) == granted()
    assert harness.cluster.get(f"{AUTOSCALERS}/web") is not None


@pytest.mark.looptime
async def test_role_of_shards_grants_exactly_the_permissions_used_for_leases():
    role = next(yaml.safe_load_all(SHARDS_ROLE.read_text()))
    async with running_fleet() as fleet:
        fleet.start("one")
        two = fleet.start("two")
        await asyncio.sleep(10)
        await fleet.harness.stop(two)
        await asyncio.sleep(10)
        verbs = {verb for group, resource, verb in used(fleet.cluster) if resource == "leases"}
    assert [(rule["resources"], set(rule["verbs"])) for rule in role["rules"]] == [(["leases"], verbs)]


def test_role_allows_writing_only_the_configured_lease():
    roles = [role for role in yaml.safe_load_all(ROLES.read_text()) if role["kind"] == "Role"]
    (role,) = [role for role in roles if role["metadata"]["name"] == "steadyscale:leader-election"]
    named = [rule["resourceNames"] for rule in role["rules"] if "resourceNames" in rule]
    assert named == [[ControllerOptions().lease_name]]
    assert role["metadata"]["namespace"] == ControllerOptions().lease_namespace
